#include <gtest/gtest.h>

#include <string>

#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

namespace idem::test {
namespace {

/// HTTP rules that only show on the wire, between a client and an upstream that plays a script.
class WireRules : public Live {
 protected:
  // One loop, and so one pool of upstream connections: the script knows which one is used.
  std::vector<std::string> flags() const override { return {"--threads", "1"}; }

  /// A gateway in front of `upstream`, on a store of its own.
  std::unique_ptr<Gateway> before(const ScriptedUpstream& upstream) {
    auto options = this->options(upstream.address());
    options.store = dir_.path() / "scripted.db";
    return std::make_unique<Gateway>(options);
  }
};

TEST_F(WireRules, P15_messages_go_on_with_our_version) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    while (connection.read_request()) {
      connection.write("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok");
    }
  });
  const auto gateway = before(upstream);
  Connection client(gateway->address());
  client.send_raw("GET /a HTTP/1.0\r\nHost: a\r\n\r\n");
  const auto answer = client.read_response();
  EXPECT_TRUE(answer.raw.starts_with("HTTP/1.1 200")) << answer.raw;
  EXPECT_TRUE(upstream.received().at(0).starts_with("GET /a HTTP/1.1\r\n"));
}

TEST_F(WireRules, P21_an_answer_before_the_body_was_read_leaves_no_bytes_behind) {
  Connection client(gateway_->address());
  // Refused by its head; the small body is read and dropped, and the connection goes on.
  auto keyless = without(charge("k", {}, "{\"amount\":1}"), "Idempotency-Key");
  EXPECT_EQ(client.exchange(keyless).status, 400);
  EXPECT_EQ(client.exchange(charge("k")).status, 201);
  // A body too long to drop ends the connection: its bytes must never be read as a request.
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  auto large = without(charge("k", {}, std::string(300'000, 'x') + smuggled), "Idempotency-Key");
  client.send(large);
  EXPECT_EQ(client.read_response().status, 400);
  EXPECT_TRUE(client.closed_by_peer());
}

TEST_F(WireRules, P24_nothing_is_ever_sent_twice_that_may_have_run) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    // Answers the first request, so that the connection is pooled; swallows the next one.
    if (connection.read_request()) connection.write_answer();
    if (connection.read_request()) connection.reset();
  });
  const auto gateway = before(upstream);
  EXPECT_EQ(send_once(gateway->address(), charge("warm")).status, 200);
  EXPECT_TRUE(is_problem(send_once(gateway->address(), charge("k")), 502, "outcome_unknown"));
  EXPECT_TRUE(is_problem(send_once(gateway->address(), charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(upstream.requests(), 2);
  // The same for an unkeyed request with a method that is not safe.
  EXPECT_EQ(send_once(gateway->address(), charge("warm2")).status, 200);
  const auto put = send_once(gateway->address(), {.method = "PUT", .target = "/a", .body = "x"});
  EXPECT_TRUE(is_problem(put, 502, "upstream_failed"));
  EXPECT_EQ(upstream.requests(), 4);
}

TEST_F(WireRules, P24_a_safe_request_is_asked_once_more_on_a_fresh_connection_only) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write_answer();
    connection.read_request();
    connection.close();
  });
  const auto gateway = before(upstream);
  Connection client(gateway->address());
  const Request get{.method = "GET", .target = "/a"};
  EXPECT_EQ(client.exchange(get).status, 200);
  EXPECT_EQ(client.exchange(get).status, 200);
  EXPECT_EQ(upstream.requests(), 3);
}

TEST_F(WireRules, P19_P31_an_answer_without_a_body_has_none_and_lengths_are_the_stored_bytes) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target() == "/none") {
        connection.write("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n");
      } else if (request->method() == "HEAD") {
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
      } else {
        connection.write(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
      }
    }
  });
  const auto gateway = before(upstream);
  auto none = charge("none");
  none.target = "/none";
  for (int i = 0; i < 2; ++i) {
    Connection client(gateway->address());
    const auto answer = client.exchange(none);
    EXPECT_EQ(answer.status, 204);
    EXPECT_FALSE(answer.get("Content-Length"));
    const auto chunked = client.exchange(charge("chunked"));
    EXPECT_EQ(chunked.body, "abc");
    EXPECT_EQ(chunked.get("Content-Length"), "3");
    EXPECT_FALSE(chunked.get("Transfer-Encoding"));
  }
  Connection client(gateway->address());
  client.send_raw("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.read_response(true).get("Content-Length"), "1234");
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/b"}).body, "abc");
}

// A 204 that announces a body: its bytes came a moment later and were read as the answer to the
// next caller's request.
TEST_F(WireRules, P23_a_body_after_a_204_never_reaches_another_caller) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n");
    if (connection.read_request())
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nA");
  });
  const auto gateway = before(upstream);
  EXPECT_EQ(send_once(gateway->address(), charge("a")).status, 204);
  EXPECT_EQ(send_once(gateway->address(), charge("b")).status, 204);
  EXPECT_EQ(upstream.connections(), 2);
}

// Two outcome fields of one response were resolved in favour of the last, and a retry ran again.
TEST_F(WireRules, S12_an_upstream_that_contradicts_itself_proves_nothing) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    const char* const fields[] = {"Idem-Outcome: store\r\nIdem-Outcome: not-executed\r\n",
                                  "Idem-Outcome: perhaps\r\n",
                                  "Idem-Outcome: unknown\r\nConnection: Idem-Outcome\r\n"};
    for (const auto* field : fields) {
      if (!connection.read_request()) return;
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + std::string(field) + "\r\n");
    }
  });
  const auto gateway = before(upstream);
  for (const auto* key : {"a", "b", "c"}) {
    EXPECT_EQ(send_once(gateway->address(), charge(key)).get("Idempotency-Outcome"), "unknown");
    EXPECT_TRUE(is_problem(send_once(gateway->address(), charge(key)), 409, "outcome_unknown"));
  }
}

// Interim heads stayed in the buffer until it was full, and the next read met a broken invariant.
TEST_F(WireRules, P18_interim_answers_do_not_fill_the_buffer) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    const auto padded = [](std::string head) {
      const std::string_view name = "X-Pad: ";
      const std::size_t used = head.size() + name.size() + 4;
      return head + std::string(name) + std::string(16'384 - used, 'p') + "\r\n\r\n";
    };
    while (connection.read_request()) {
      connection.write(padded("HTTP/1.1 103 Early Hints\r\n") +
                       padded("HTTP/1.1 103 Early Hints\r\n") +
                       padded("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"));
      connection.write("ok");
    }
  });
  const auto gateway = before(upstream);
  const auto answer = send_once(gateway->address(), charge("k"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "ok");
}

TEST_F(WireRules, P25_a_request_is_sent_to_its_end_while_the_answer_begins) {
  const std::string body(8'000'000, 'x');
  ScriptedUpstream upstream([&](UpstreamConnection& connection) {
    connection.read_some();
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    if (connection.read_request()) connection.write("ok");
  });
  auto options = this->options(upstream.address());
  options.store = dir_.path() / "large.db";
  options.flags.insert(options.flags.end(), {"--request-body-max", "16MiB"});
  const Gateway gateway(options);
  const auto answer = send_once(gateway.address(), charge("k", {}, body));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(WireRules, P32_the_date_is_the_original_one) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    while (connection.read_request()) {
      connection.write(
          "HTTP/1.1 201 Created\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Length: "
          "0\r\n\r\n");
    }
  });
  const auto gateway = before(upstream);
  for (int i = 0; i < 2; ++i) {
    const auto answer = send_once(gateway->address(), charge("k"));
    EXPECT_EQ(answer.get("Date"), "Tue, 15 Nov 1994 08:12:31 GMT");
    EXPECT_EQ(answer.count("Date"), 1U);
  }
  // And where there was none, one is added.
  EXPECT_TRUE(send_once(gateway->address(), without(charge("k"), "X-Tenant-Id")).get("Date"));
}

TEST_F(WireRules, T46_the_same_key_under_another_path_is_another_operation) {
  auto other = charge("k");
  other.target = "/refunds";
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(ask(other).status, 201);
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(WireRules, T64_a_replay_comes_before_the_apis_own_validation) {
  // The order was filled meanwhile: the API would now refuse, but the retry gets the first answer.
  const auto first = ask(charge("k"));
  const auto retry = ask(with(charge("k"), "X-Fault", "refuse=409"));
  EXPECT_TRUE(replays(first, retry));
}

}  // namespace
}  // namespace idem::test
