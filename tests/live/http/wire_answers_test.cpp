#include <gtest/gtest.h>

#include <string>

#include "support/back_off.hpp"
#include "support/broken_chunks.hpp"
#include "support/scripted_live.hpp"

/// The rules of HTTP on the upstream's side of the gateway: what is believed of its answers, what
/// is passed on, and what is kept.
namespace idem::test {
namespace {

class WireAnswers : public Scripted {
 protected:
  /// Answers each request with these bytes, and closes.
  void start_with(const std::string& bytes) {
    start([bytes](UpstreamConnection& connection) {
      if (connection.read_request()) connection.write(bytes);
    });
  }
  std::string ask_raw(std::string_view bytes) {
    Connection client(gateway_->address());
    client.send_raw(bytes);
    return client.read_until_close();
  }
};

const Request get_request{.method = "GET", .target = "/a"};

TEST_F(WireAnswers, P05_P06_P07_P09_P10_an_answer_that_breaks_strict_http_is_unknown) {
  const char* answers[] = {
      "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\nContent-Length: 2\r\n\r\nok",         // P05
      "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 2\r\n\r\nok",               // P06
      "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok",             // P07
      "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",                              // P07
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",           // P09
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",  // P09
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"};       // P10
  SharedText answer;
  ASSERT_NO_FATAL_FAILURE(start([&answer](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write(answer.get());
  }));
  int number = 0;
  for (const auto* bytes : answers) {
    SCOPED_TRACE(bytes);
    answer.set(bytes);
    const auto key = "k" + std::to_string(number++);
    const auto first = ask(charge(key));
    if (std::string_view(bytes).find("\n\t") != std::string_view::npos && first.status == 200) {
      // RFC 9112 §5.2 lets a gateway replace the fold by spaces instead.
      EXPECT_TRUE(first.get("X")) << first.raw;
      EXPECT_EQ(first.get("X")->find('\n'), std::string::npos);
      continue;
    }
    EXPECT_TRUE(is_problem(first, 502, "outcome_unknown"));
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
  }
  EXPECT_EQ(upstream_->requests(), number);
}

TEST_F(WireAnswers, P04_a_space_before_a_colon_is_stripped) {
  ASSERT_NO_FATAL_FAILURE(start_with("HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 2\r\n\r\nok"));
  for (int i = 0; i < 2; ++i) {
    const auto answer = ask(charge("k"));
    EXPECT_EQ(answer.status, 200) << answer.raw;
    EXPECT_NE(answer.raw.find("X-A: b\r\n"), std::string::npos) << answer.raw;
  }
}

TEST_F(WireAnswers, P12_broken_chunks_are_unknown) {
  SharedText body;
  ASSERT_NO_FATAL_FAILURE(start([&body](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body.get());
  }));
  int number = 0;
  auto bodies = broken_chunks();
  bodies.emplace_back("2\r\nab\r\n0\r\n");  // Never ends.
  for (const auto& broken : bodies) {
    SCOPED_TRACE(broken);
    body.set(broken);
    const auto key = "k" + std::to_string(number++);
    EXPECT_TRUE(is_problem(ask(charge(key)), 502, "outcome_unknown"));
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
    // Seen before the head went on, it is 502; seen later, the answer is cut off. Never a whole
    // one.
    const auto unkeyed = ask(get_request);
    EXPECT_TRUE(unkeyed.status == 0 || unkeyed.status == 502) << unkeyed.raw;
    ++number;
  }
  EXPECT_EQ(upstream_->requests(), number);
}

// Decided: trailers are dropped, and consistently so. They are no part of the stored answer, and a
// replay that lacked what the first answer had would not be byte for byte (P2).
TEST_F(WireAnswers, T27_P13_trailers_are_dropped_live_and_on_replay) {
  ASSERT_NO_FATAL_FAILURE(start_with(
      "HTTP/1.1 200 OK\r\nTrailer: X-Sum, Set-Cookie\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\nContent-Length: 99\r\n\r\n"));
  const auto first = ask(charge("k"));
  const auto again = ask(charge("k"));
  EXPECT_TRUE(replays(first, again));
  const auto relayed =
      ask_raw("GET /a HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n");
  EXPECT_TRUE(relayed.starts_with("HTTP/1.1 200")) << relayed;
  EXPECT_TRUE(relayed.ends_with("\r\n3\r\nabc\r\n0\r\n\r\n")) << relayed;
  for (const auto& raw : {first.raw, again.raw, relayed}) {
    EXPECT_EQ(raw.find("X-Sum"), std::string::npos) << raw;
    EXPECT_EQ(raw.find("Set-Cookie"), std::string::npos) << raw;
    EXPECT_EQ(raw.find(": 99"), std::string::npos) << raw;
  }
}

// RFC 9110 §7.6.3: Via is ours to add to requests; on answers a gateway may, and this one does not.
TEST_F(WireAnswers, P16_the_via_of_an_answer_is_passed_on_and_not_kept) {
  ASSERT_NO_FATAL_FAILURE(
      start_with("HTTP/1.1 200 OK\r\nVia: 1.1 inner\r\nContent-Length: 2\r\n\r\nok"));
  const auto first = ask(charge("k"));
  EXPECT_EQ(first.get("Via"), "1.1 inner");
  EXPECT_EQ(first.count("Via"), 1U);
  EXPECT_FALSE(ask(charge("k")).get("Via")) << "a replay has not passed there";
}

TEST_F(WireAnswers, P18_interim_answers_never_reach_http10) {
  ASSERT_NO_FATAL_FAILURE(
      start_with("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
                 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  const auto unkeyed = ask_raw("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(unkeyed.starts_with("HTTP/1.1 200")) << unkeyed;
  const auto keyed = ask_raw(
      "POST /a HTTP/1.0\r\nX-Tenant-Id: acme\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(keyed.starts_with("HTTP/1.1 200")) << keyed;
  EXPECT_EQ(ask(get_request).interim, (std::vector<int>{103, 102}));
}

TEST_F(WireAnswers, P17_no_continue_is_sent_to_http_1_0) {
  ASSERT_NO_FATAL_FAILURE(start(ScriptedUpstream::answer_all));
  const auto answer = ask_raw(
      "POST /a HTTP/1.0\r\nX-Tenant-Id: acme\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n{}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
}

TEST_F(WireAnswers, P19_P20_no_body_follows_a_304_or_a_head_live_or_on_replay) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target() == "/none") {
        connection.write("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n");
        return;
      }
      if (request->method() == "PUT") {
        connection.write("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n");
      } else {
        connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        if (request->method() != "HEAD") connection.write("2\r\nok\r\n0\r\n\r\n");
      }
    }
  }));
  auto unchanged = charge("unchanged");
  unchanged.method = "PUT";
  auto none = charge("none");
  none.target = "/none";
  auto head = charge("head", "", "");
  head.method = "HEAD";
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i == 0 ? "live" : "replay");
    // On one connection: a byte of a body that must not be there would be the next answer's start.
    Connection client(gateway_->address());
    const auto not_modified = client.exchange(unchanged);
    EXPECT_EQ(not_modified.status, 304);
    EXPECT_EQ(not_modified.get("ETag"), "\"a\"");
    const auto empty = client.exchange(none);
    EXPECT_EQ(empty.status, 204);
    EXPECT_FALSE(empty.get("Transfer-Encoding"));
    EXPECT_FALSE(empty.get("Content-Length"));
    EXPECT_EQ(client.exchange(head).status, 200);
    const auto whole = client.exchange(get_request);
    EXPECT_EQ(whole.body, "ok");
    EXPECT_FALSE(whole.get("Content-Length")) << "never both (RFC 9112 6.2)";
  }
}

TEST_F(WireAnswers, P22_an_upstream_that_sends_close_is_not_asked_again_on_that_connection) {
  const char* heads[] = {"HTTP/1.1 200 OK\r\nConnection: close\r\n", "HTTP/1.0 200 OK\r\n",
                         "HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\n"};
  std::string head;
  ASSERT_NO_FATAL_FAILURE(start([&head](UpstreamConnection& connection) {
    // It sends "close" and keeps the connection: only that field keeps the next request off.
    while (connection.read_request()) connection.write(head + "Content-Length: 2\r\n\r\nok");
  }));
  int number = 0;
  for (const auto* closing : heads) {
    head = closing;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(ask(charge("k" + std::to_string(number++))).status, 200);
      EXPECT_EQ(upstream_->connections(), number) << closing;
    }
  }
  head = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n";
  EXPECT_EQ(ask(charge("kept1")).status, 200);
  EXPECT_EQ(ask(charge("kept2")).status, 200);
  EXPECT_EQ(upstream_->connections(), number + 1);
}

TEST_F(WireAnswers, P26_an_answer_head_above_the_limits_is_unknown) {
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "X-" + std::to_string(i) + ": a\r\n";
  const std::string heads[] = {fields, "X: " + std::string(17'000, 'a') + "\r\n"};
  std::string head;
  ASSERT_NO_FATAL_FAILURE(start([&head](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write("HTTP/1.1 200 OK\r\n" + head + "Content-Length: 0\r\n\r\n");
  }));
  int number = 0;
  for (const auto& large : heads) {
    head = large;
    const auto key = "k" + std::to_string(number++);
    EXPECT_TRUE(is_problem(ask(charge(key)), 502, "outcome_unknown"));
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
    EXPECT_TRUE(is_problem(ask(get_request), 502, "upstream_failed"));
  }
}

// An answer without Date got a new one at each replay.
TEST_F(WireAnswers, P32_an_answer_without_a_date_keeps_the_one_it_was_given) {
  ASSERT_NO_FATAL_FAILURE(start_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  const auto first = ask(charge("k"));
  ASSERT_TRUE(first.get("Date"));
  // The gateway's clock has moved on once it dates something else otherwise.
  const auto give_up = std::chrono::steady_clock::now() + patience;
  auto later = first.get("Date");
  while (later == first.get("Date") && std::chrono::steady_clock::now() < give_up) {
    back_off();
    later = ask(get_request).get("Date");
  }
  EXPECT_NE(later, first.get("Date"));
  const auto again = ask(charge("k"));
  EXPECT_TRUE(replays(first, again));
  EXPECT_EQ(again.get("Date"), first.get("Date"));
  EXPECT_EQ(again.count("Date"), 1U);
}

TEST_F(WireAnswers, P32_the_date_of_a_relayed_answer_is_kept_too) {
  ASSERT_NO_FATAL_FAILURE(start_with(
      "HTTP/1.1 200 OK\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Length: 2\r\n\r\nok"));
  const auto answer = ask(get_request);
  EXPECT_EQ(answer.get("Date"), "Tue, 15 Nov 1994 08:12:31 GMT");
  EXPECT_EQ(answer.count("Date"), 1U);
}

}  // namespace
}  // namespace idem::test
