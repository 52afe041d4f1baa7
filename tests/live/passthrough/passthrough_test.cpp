#include <gtest/gtest.h>

#include <sys/socket.h>
#include <string>
#include <thread>

#include "support/bulk.hpp"
#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

constexpr std::uint64_t large = (sanitized ? 32 : 1024) * mebibyte;
// Of anonymous memory, while a body of `large` passes.
constexpr std::uint64_t growth_max = 8 * mebibyte;

std::string length_field(std::uint64_t bytes) {
  return "Content-Length: " + std::to_string(bytes) + "\r\n";
}

class PassThrough : public Scripted {
 protected:
  /// Sends each piece back as it comes, from the first one on, and so never has much of either.
  static void echo_upload(UpstreamConnection& connection) {
    std::string seen;
    while (read_until(connection.socket(), seen, "\r\n\r\n")) {
      const auto end = seen.find("\r\n\r\n") + 4;
      const auto field = seen.find("Content-Length: ");
      std::uint64_t left = field < end ? std::stoull(seen.substr(field + 16)) : 0;
      connection.write("HTTP/1.1 200 OK\r\n" + length_field(left) + "\r\n");
      seen.erase(0, end);
      for (;;) {
        if (!connection.write(seen)) return;
        left -= seen.size();
        seen.clear();
        if (left == 0) break;
        if (connection.socket().receive(seen) != Socket::Received::bytes) return;
      }
    }
  }
};

TEST_F(PassThrough, a_body_of_a_gibibyte_goes_up_in_constant_memory) {
  std::uint64_t during = 0;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    std::string seen;
    while (read_until(connection.socket(), seen, "\r\n\r\n")) {
      if (seen.starts_with("PUT")) {
        const auto body = seen.substr(seen.find("\r\n\r\n") + 4);
        const bool intact = receive_pattern(connection.socket(), body, large);
        during = anonymous_bytes(gateway_->process().pid());
        connection.write_answer(intact ? "intact" : "broken");
        return;
      }
      connection.write_answer("warm");
      seen.clear();
    }
  }));
  ask({.method = "GET", .target = "/"});
  const auto before = anonymous_bytes(gateway_->process().pid());
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(large) + "\r\n");
  EXPECT_TRUE(send_pattern(client.socket(), large));
  EXPECT_EQ(client.read_response().body, "intact");
  RecordProperty("growth_kib", static_cast<int>((during - std::min(before, during)) / 1024));
  if (!sanitized) {
    EXPECT_LT(during, before + growth_max);
  }
}

TEST_F(PassThrough, an_answer_of_a_gibibyte_comes_down_in_constant_memory) {
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    std::string seen;
    while (read_until(connection.socket(), seen, "\r\n\r\n")) {
      if (seen.starts_with("GET /file")) {
        connection.write("HTTP/1.1 200 OK\r\n" + length_field(large) + "\r\n");
        send_pattern(connection.socket(), large);
      } else {
        connection.write_answer("warm");
      }
      seen.clear();
    }
  }));
  ask({.method = "GET", .target = "/"});
  const auto before = anonymous_bytes(gateway_->process().pid());
  Connection client(gateway_->address());
  client.send_raw("GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
  EXPECT_NE(seen.find(length_field(large)), std::string::npos) << seen.substr(0, 500);
  const auto body = seen.substr(seen.find("\r\n\r\n") + 4);
  EXPECT_TRUE(receive_pattern(client.socket(), body, large));
  const auto during = anonymous_bytes(gateway_->process().pid());
  RecordProperty("growth_kib", static_cast<int>((during - std::min(before, during)) / 1024));
  if (!sanitized) {
    EXPECT_LT(during, before + growth_max);
  }
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).body, "warm") << "and goes on";
}

TEST_F(PassThrough, P25_an_early_final_answer_comes_while_the_body_is_still_sent) {
  Gate answered;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    std::string seen;
    if (!read_until(connection.socket(), seen, "\r\n\r\n")) return;
    connection.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge");
    answered.wait();  // And reads nothing more: the rest of the body has nowhere to go.
  }));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(large) + "\r\n");
  std::thread sender([&] { send_pattern(client.socket(), large); });
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 413) << answer.trouble;
  EXPECT_EQ(answer.body, "large");
  sender.join();
  answered.open();
  EXPECT_TRUE(upstream_->wait_for_finished(1));
}

// The unread rest of the one would be the beginning of the other.
TEST_F(PassThrough, P23_a_connection_whose_request_was_not_sent_whole_is_not_used_again) {
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    if (connection.index() > 0) return ScriptedUpstream::answer_all(connection);
    std::string seen;
    if (!read_until(connection.socket(), seen, "\r\n\r\n")) return;
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
    while (connection.read_some()) {  // It would read all that ever comes as the body.
    }
  }));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(large) + "\r\n");
  std::thread sender([&] { send_pattern(client.socket(), large); });
  const auto early = client.read_response();
  EXPECT_EQ(early.status, 200) << early.trouble;
  EXPECT_EQ(early.body, "early");
  const auto keyed = ask(charge("k"));
  EXPECT_EQ(keyed.status, 200) << keyed.trouble;
  EXPECT_EQ(keyed.body, "ok");
  EXPECT_EQ(upstream_->connections(), 2);
  ::shutdown(client.socket().fd(),
             SHUT_RDWR);  // Ends the sender's write, and leaves it its socket.
  sender.join();
}

TEST_F(PassThrough, P25_bodies_go_both_ways_at_once) {
  const std::uint64_t size = (sanitized ? 2 : 64) * mebibyte;
  ASSERT_NO_FATAL_FAILURE(start(echo_upload));
  Connection client(gateway_->address());
  for (int round = 0; round < 3; ++round) {
    client.send_raw("PUT /echo HTTP/1.1\r\nHost: a\r\n" + length_field(size) + "\r\n");
    std::thread sender([&] { send_pattern(client.socket(), size); });
    std::string seen;
    EXPECT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
    const auto body = seen.substr(seen.find("\r\n\r\n") + 4);
    EXPECT_TRUE(receive_pattern(client.socket(), body, size)) << round;
    sender.join();
  }
  EXPECT_EQ(upstream_->connections(), 1) << "each was sent and answered to its end";
}

TEST_F(PassThrough, P25_an_upstream_that_answers_first_still_gets_the_whole_body) {
  const std::uint64_t size = (sanitized ? 2 : 64) * mebibyte;
  SharedText received;
  Gate ended;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    std::string seen;
    if (!read_until(connection.socket(), seen, "\r\n\r\n")) return;
    connection.write("HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nearly");
    const auto body = seen.substr(seen.find("\r\n\r\n") + 4);
    received.set(receive_pattern(connection.socket(), body, size) ? "intact" : "broken");
    ended.open();
    ScriptedUpstream::answer_all(connection);
  }));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(size) + "\r\n");
  EXPECT_EQ(client.read_response().body, "early") << "before the body was sent";
  EXPECT_TRUE(send_pattern(client.socket(), size));
  EXPECT_TRUE(ended.wait());
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).body, "ok") << "and goes on";
  EXPECT_EQ(received.get(), "intact");
  EXPECT_EQ(upstream_->connections(), 1);
}

TEST_F(PassThrough, P25_an_error_comes_at_once_though_the_client_has_not_sent_its_body) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    std::string seen;
    if (!read_until(connection.socket(), seen, "begun")) return;
    connection.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
    while (connection.socket().receive(seen) == Socket::Received::bytes) {
    }
  }));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(large) + "\r\nbegun");
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 401) << answer.trouble;
  EXPECT_EQ(answer.body, "no");
  EXPECT_TRUE(client.closed_by_peer());
}

TEST_F(PassThrough, P25_an_upload_that_breaks_off_under_its_answer_ends_for_the_upstream_too) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    std::string seen;
    if (!read_until(connection.socket(), seen, "begun")) return;
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst");
    while (connection.socket().receive(seen) == Socket::Received::bytes) {
    }
    connection.write("last");  // Once it knows that nothing more comes.
  }));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(1000) + "\r\nbegun");
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "first"));
  client.socket().half_close();
  EXPECT_TRUE(read_until(client.socket(), seen, "firstlast")) << seen;
  EXPECT_TRUE(client.closed_by_peer());
}

// Its time runs while the answer goes the other way, and ends the upload alone.
TEST_F(PassThrough, P26_a_slow_upload_is_ended_and_its_answer_is_not) {
  Gate ended;
  ASSERT_NO_FATAL_FAILURE(start(
      [&](UpstreamConnection& connection) {
        std::string seen;
        if (!read_until(connection.socket(), seen, "begun")) return;
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst");
        while (connection.socket().receive(seen) == Socket::Received::bytes) {
        }
        ended.open();
        connection.write("last");
      },
      {"--body-grace", "200ms"}));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(1000) + "\r\nbegun");
  std::string seen;
  EXPECT_TRUE(read_until(client.socket(), seen, "firstlast")) << seen;
  EXPECT_TRUE(ended.wait());
}

TEST_F(PassThrough, P25_a_keyed_request_and_its_answer_may_both_be_large) {
  const std::size_t size = 8 * mebibyte;
  for (const std::size_t stored_max : {16 * mebibyte, mebibyte}) {
    ASSERT_NO_FATAL_FAILURE(start(
        [&](UpstreamConnection& connection) {
          // Reads nothing of the body before all of the answer was read.
          for (;;) {
            const auto head = connection.peek_head();
            if (!head) return;
            if (!connection.write("HTTP/1.1 201 Created\r\n" + length_field(size) + "\r\n")) return;
            for (std::size_t sent = 0; sent < size; sent += mebibyte) {
              if (!connection.write(pattern_text(size).substr(sent, mebibyte))) return;
            }
            if (!connection.read_request()) return;
          }
        },
        {"--request-body-max", "16MiB", "--response-body-max", std::to_string(stored_max) + "B"}));
    upstream_->shrink_windows();
    for (int i = 0; i < 2; ++i) {
      const auto key = "large" + std::to_string(i) + std::to_string(stored_max);
      const auto first = ask(charge(key, "", pattern_text(size)));
      EXPECT_EQ(first.status, 201) << first.trouble;
      EXPECT_TRUE(first.body == pattern_text(size));
      const auto again = ask(charge(key, "", pattern_text(size)));
      if (stored_max > size) {
        EXPECT_TRUE(replays(first, again));
      } else {
        EXPECT_TRUE(is_problem(again, 409, "response_not_stored"));
      }
    }
    EXPECT_TRUE(upstream_->wait_for_requests(2)) << "though its answer came before";
  }
}

// A client with nothing more to say before its answer; an upstream that is done with it at once.
TEST_F(PassThrough, P25_an_early_error_carries_connection_close) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    std::string seen;
    if (!read_until(connection.socket(), seen, "\r\n\r\n")) return;
    connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    while (connection.socket().receive(seen) == Socket::Received::bytes) {
    }
  }));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(20) + "\r\n");
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 404) << answer.trouble;
  EXPECT_EQ(answer.get("Connection"), "close");
}

// State of one exchange on a connection must not end the next one.
TEST_F(PassThrough, P23_an_error_to_an_upload_does_not_cut_the_next_answer) {
  ASSERT_NO_FATAL_FAILURE(start(
      [](UpstreamConnection& connection) {
        while (const auto request = connection.read_request()) {
          if (request->method() == "PUT") {
            connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
            continue;
          }
          connection.write("HTTP/1.1 200 OK\r\n" + length_field(8) + "\r\n");
          connection.drip("dripping", 100);
        }
      },
      {"--upstream-timeout", "400ms", "--keepalive-idle", "10s"}));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(5) + "\r\n");
  ASSERT_TRUE(client.socket().fd() >= 0);
  client.send_raw("later");
  EXPECT_EQ(client.read_response().status, 404);
  const auto slow = client.exchange({.method = "GET", .target = "/slow"});
  EXPECT_EQ(slow.body, "dripping") << slow.trouble;
}

// The upstream's time does not run while it is the client that is waited for.
TEST_F(PassThrough, P25_an_early_head_does_not_hurry_the_upload) {
  ASSERT_NO_FATAL_FAILURE(start(
      [](UpstreamConnection& connection) {
        std::string seen;
        if (!read_until(connection.socket(), seen, "\r\n\r\n")) return;
        connection.write("HTTP/1.1 200 OK\r\n" + length_field(4) + "\r\n");
        if (read_until(connection.socket(), seen, "uploaded")) connection.write("done");
      },
      {"--upstream-timeout", "300ms"}));
  Connection client(gateway_->address());
  client.send_raw("PUT /file HTTP/1.1\r\nHost: a\r\n" + length_field(8) + "\r\n");
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
  for (const char byte : std::string_view("uploaded")) {
    EXPECT_FALSE(client.socket().readable_within(100)) << "until it is whole";
    client.send_raw({&byte, 1});
  }
  EXPECT_TRUE(read_until(client.socket(), seen, "done")) << seen;
}

TEST_F(PassThrough, P25_a_complete_answer_is_kept_and_given_though_the_request_is_still_sent) {
  const std::size_t size = 8 * mebibyte;
  Gate read_on;
  ASSERT_NO_FATAL_FAILURE(start(
      [&](UpstreamConnection& connection) {
        if (!connection.peek_head()) return;
        connection.write("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\npaid");
        read_on.wait();
        connection.read_request();
      },
      {"--request-body-max", "16MiB"}));
  upstream_->shrink_windows();
  const auto request = charge("large", "", pattern_text(size));
  const auto first = ask(request);
  EXPECT_EQ(first.body, "paid") << first.trouble;
  EXPECT_TRUE(replays(first, ask(request)));
  read_on.open();
  EXPECT_TRUE(upstream_->wait_for_requests(1)) << "and it gets the rest";
}

TEST_F(PassThrough, P17_expect_is_answered_by_the_gateway_and_not_passed_on) {
  ASSERT_NO_FATAL_FAILURE(start(ScriptedUpstream::answer_all));
  Connection client(gateway_->address());
  client.send_raw("PUT /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + length_field(2) +
                  "\r\n");
  std::string interim;
  ASSERT_TRUE(read_until(client.socket(), interim, "\r\n\r\n"));
  EXPECT_EQ(interim, "HTTP/1.1 100 Continue\r\n\r\n");
  client.send_raw("{}");
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(upstream_->received()[0].find("Expect"), std::string::npos);
}

TEST_F(PassThrough, P19_head_and_204_and_304_have_no_body) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->method() == "HEAD") {
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
      } else if (request->target() == "/204") {
        connection.write("HTTP/1.1 204 No Content\r\n\r\n");
      } else if (request->target() == "/304") {
        connection.write("HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: \"a\"\r\n\r\n");
      } else {
        connection.write_answer("body");
      }
    }
  }));
  Connection client(gateway_->address());
  const auto head = client.exchange({.method = "HEAD", .target = "/a"});
  EXPECT_EQ(head.get("Content-Length"), "77");
  const auto none = client.exchange({.method = "GET", .target = "/204"});
  EXPECT_EQ(none.status, 204);
  EXPECT_FALSE(none.get("Content-Length"));
  const auto same = client.exchange({.method = "GET", .target = "/304"});
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.get("ETag"), "\"a\"");
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/a"}).body, "body");
  EXPECT_EQ(upstream_->connections(), 1);
}

}  // namespace
}  // namespace idem::test
