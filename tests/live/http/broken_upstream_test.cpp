#include <gtest/gtest.h>

#include <string>

#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

using BrokenUpstream = Live;

TEST_F(BrokenUpstream, T19_T20_T22_T23_every_broken_answer_is_unknown_and_never_run_again) {
  struct {
    const char* faults;
    int effects;
  } const cases[] = {{"drop-before", 0},       {"drop-after", 1}, {"truncate", 1},
                     {"truncate-chunked", 1},  {"garbage", 1},    {"interim,drop-after", 1},
                     {"chunked,drop-after", 1}};
  int number = 0;
  for (const auto& broken : cases) {
    SCOPED_TRACE(broken.faults);
    const auto key = "k" + std::to_string(number++);
    const auto first = ask(charge(key, broken.faults));
    EXPECT_TRUE(is_problem(first, 502, "outcome_unknown"));
    EXPECT_EQ(first.get("Idempotency-Outcome").value_or("unknown"), "unknown");
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
    EXPECT_EQ(effects(key), broken.effects);
    EXPECT_EQ(provider_->of_key(key).arrivals, 1) << "sent at most once";
  }
}

TEST_F(BrokenUpstream, T20_an_unreachable_upstream_is_proven_harmless_and_the_retry_runs) {
  const auto address = unused_address();
  auto options = this->options(address);
  options.store = dir_.path() / "down.db";
  const Gateway gateway(options);
  ASSERT_TRUE(gateway.running()) << "an upstream that is down does not keep it from starting";
  for (int i = 0; i < 3; ++i) {
    const auto answer = send_once(gateway.address(), charge("k"));
    EXPECT_TRUE(is_problem(answer, 503, "upstream_unreachable"));
    EXPECT_EQ(json_text(answer.body, "retry"), "same_key");
    EXPECT_TRUE(answer.get("Retry-After"));
  }
  const Provider late(address);
  ASSERT_TRUE(late.running());
  const auto answer = send_once(gateway.address(), charge("k"));
  EXPECT_EQ(answer.status, 201);
  EXPECT_TRUE(replays(answer, send_once(gateway.address(), charge("k"))));
  EXPECT_EQ(late.effects("k"), 1);
}

TEST_F(BrokenUpstream, unkeyed_requests_get_502) {
  const auto read = [&](std::string_view faults) {
    return ask({.method = "PUT", .target = "/charges?fault=" + std::string(faults), .body = "{}"});
  };
  EXPECT_TRUE(is_problem(read("drop-after"), 502, "upstream_failed"));
  EXPECT_TRUE(is_problem(read("garbage"), 502, "upstream_failed"));
  // A cut body may have been on its way to the client already; it must not look whole.
  EXPECT_NE(read("truncate").status, 201);
  EXPECT_NE(read("truncate-chunked").status, 201);
}

class ShortTimeout : public Live {
 protected:
  std::vector<std::string> flags() const override {
    return {"--upstream-timeout", "500ms", "--lease", "4s"};
  }
};

TEST_F(ShortTimeout, T21_is_unknown_not_a_failure) {
  const auto first = ask(charge("k", "hold=h"));
  EXPECT_TRUE(is_problem(first, 504, "outcome_unknown"));
  provider_->release("h");
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ShortTimeout, unkeyed_requests_get_504) {
  EXPECT_TRUE(is_problem(ask({.method = "PUT", .target = "/charges?fault=hold=h", .body = "{}"}),
                         504, "upstream_timeout"));
}

using ScriptedLive = Scripted;

TEST_F(ScriptedLive, T66_a_request_that_was_read_is_never_sent_again) {
  const ScriptedUpstream::Script endings[] = {
      [](UpstreamConnection& c) { c.read_request(), c.close(); },
      [](UpstreamConnection& c) { c.read_request(), c.reset(); },
      [](UpstreamConnection& c) { c.read_some(), c.reset(); },
      [](UpstreamConnection& c) { c.read_request(), c.half_close(), c.read_some(); }};
  int number = 0;
  for (const auto& ending : endings) {
    SCOPED_TRACE(number);
    ASSERT_NO_FATAL_FAILURE(start(ending));
    const auto key = "k" + std::to_string(number++);
    EXPECT_TRUE(is_problem(ask(charge(key)), 502, "outcome_unknown"));
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
    EXPECT_EQ(upstream_->connections(), 1);
    gateway_.reset();
  }
}

TEST_F(ScriptedLive, T66_a_dead_pooled_connection_is_replaced_before_anything_is_sent) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write_answer("first");
    if (connection.index() > 0) ScriptedUpstream::answer_all(connection);
  }));
  EXPECT_EQ(ask(charge("k1")).body, "first");
  ASSERT_TRUE(upstream_->wait_for_finished(1)) << "the pooled connection is closed by now";
  const auto second = ask(charge("k2"));
  EXPECT_EQ(second.status, 200) << second.raw;
  EXPECT_EQ(second.get("Idempotency-Outcome"), "stored");
  EXPECT_EQ(upstream_->requests(), 2);
}

TEST_F(ScriptedLive, T66_a_pooled_connection_that_dies_after_reading_is_unknown_too) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write_answer();
    connection.read_request();  // A second request on this connection is read and never answered.
  }));
  EXPECT_EQ(ask(charge("k1")).status, 200);
  const auto second = ask(charge("k2"));
  EXPECT_TRUE(is_problem(second, 502, "outcome_unknown"));
  EXPECT_TRUE(is_problem(ask(charge("k2")), 409, "outcome_unknown"));
  EXPECT_EQ(upstream_->requests(), 2) << "k2 was sent more than once";
}

TEST_F(ScriptedLive, P23_a_connection_with_bytes_left_over_is_not_used_again) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    while (connection.read_request()) {
      connection.write(
          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n"
          "\r\nforged");
    }
  }));
  EXPECT_EQ(ask(charge("k1")).body, "ok");
  EXPECT_EQ(ask(charge("k2")).body, "ok");
  EXPECT_EQ(ask(charge("k3")).body, "ok");
  EXPECT_EQ(upstream_->connections(), 3);
}

TEST_F(ScriptedLive, P11_answers_whose_framing_is_in_doubt_are_unknown) {
  const char* heads[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length : 2\x01\r\n\r\nok",
      "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/9.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
  };
  std::string answer;
  ASSERT_NO_FATAL_FAILURE(start([&answer](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write(answer);
  }));
  int number = 0;
  for (const auto* head : heads) {
    SCOPED_TRACE(head);
    answer = head;
    const auto key = "k" + std::to_string(number++);
    EXPECT_TRUE(is_problem(ask(charge(key)), 502, "outcome_unknown"));
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
    ASSERT_TRUE(upstream_->wait_for_finished(number));
  }
  EXPECT_EQ(upstream_->requests(), number);
}

TEST_F(ScriptedLive, P25_an_answer_that_comes_before_the_body_is_read_counts) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    connection.read_some();
    connection.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge");
    connection.half_close();
    while (connection.read_some()) {
    }
  }));
  const auto first = ask(charge("k", "", std::string(1'000'000, 'x')));
  EXPECT_EQ(first.status, 413);
  EXPECT_EQ(first.body, "large");
}

TEST_F(ScriptedLive, only_interim_answers_are_no_answer) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    for (int i = 0; i < 1000; ++i) {
      if (!connection.write("HTTP/1.1 103 Early Hints\r\n\r\n")) return;
    }
  }));
  EXPECT_TRUE(is_problem(ask(charge("k")), 502, "outcome_unknown"));
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
}

}  // namespace
}  // namespace idem::test
