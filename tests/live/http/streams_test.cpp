#include <gtest/gtest.h>

#include <poll.h>

#include <string>

#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

/// Server-sent events and other bodies without an end.
class Streams : public Scripted {
 protected:
  static constexpr const char* chunked_head =
      "HTTP/1.1 201 Created\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
      "Location: /streams/1\r\nTransfer-Encoding: chunked\r\n\r\n";

  /// The answer to every retry of a stream.
  void expect_not_stored(std::string_view key) {
    const auto retry = ask(charge(key));
    EXPECT_TRUE(is_problem(retry, 409, "response_not_stored"));
    EXPECT_EQ(json_text(retry.body, "retry"), "never");
    EXPECT_NE(retry.body.find("\"original_status\":201"), std::string::npos) << retry.body;
    EXPECT_EQ(retry.get("Location"), "/streams/1");
  }
};

TEST_F(Streams, T25_events_arrive_one_by_one_and_the_stream_is_never_stored_nor_run_again) {
  Gate second;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write(chunked_head);
    connection.write("9\r\ndata: 1\n\n\r\n");
    if (!second.wait()) return;
    connection.write("9\r\ndata: 2\n\n\r\n0\r\n\r\n");
    ScriptedUpstream::answer_all(connection);
  }));
  Connection client(gateway_->address());
  client.send(charge("k"));
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "data: 1\n\n"));
  EXPECT_TRUE(seen.starts_with("HTTP/1.1 201")) << seen;
  EXPECT_NE(seen.find("Idempotency-Outcome: stored"), std::string::npos) << seen;
  // The stream has not ended, and the completion is durable already.
  expect_not_stored("k");
  second.open();
  ASSERT_TRUE(read_until(client.socket(), seen, "0\r\n\r\n"));
  EXPECT_NE(seen.find("data: 2\n\n"), std::string::npos);
  expect_not_stored("k");
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).status, 200) << "kept alive";
  EXPECT_EQ(upstream_->requests(), 2);
}

TEST_F(Streams, T25_however_it_is_framed_and_whatever_comes_before) {
  const std::string type = "Content-Type: Text/Event-Stream\r\nLocation: /streams/1\r\n";
  const std::string created = "HTTP/1.1 201 Created\r\n" + type;
  const std::string answers[] = {
      created + "\r\ndata: 1\n\n", created + "Content-Length: 9\r\n\r\ndata: 1\n\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + created +
          "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n",
      "HTTP/1.1 201 Created\r\nContent-Type: multipart/x-mixed-replace;boundary=b\r\n"
      "Location: /streams/1\r\n\r\ndata: 1\n\n"};
  std::string answer;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write(answer);
  }));
  int number = 0;
  for (const auto& each : answers) {
    SCOPED_TRACE(each);
    answer = each;
    const auto key = "k" + std::to_string(number++);
    const auto first = ask(charge(key));
    EXPECT_EQ(first.status, 201) << first.trouble;
    EXPECT_EQ(first.body, "data: 1\n\n");
    expect_not_stored(key);
    ASSERT_TRUE(upstream_->wait_for_finished(number));
  }
  EXPECT_EQ(upstream_->requests(), number);
}

TEST_F(Streams, T25_an_answer_without_a_body_is_no_stream) {
  const std::string type = "Content-Type: text/event-stream\r\n";
  const std::string date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  SharedText answer;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    while (connection.read_request()) connection.write(answer.get());
  }));
  for (const auto* status : {"204 No Content", "304 Not Modified"}) {
    answer.set(std::string("HTTP/1.1 ") + status + "\r\n" + type + date + "\r\n");
    const std::string key(status, 3);
    const auto first = ask(charge(key));
    EXPECT_EQ(std::to_string(first.status), key);
    EXPECT_TRUE(replays(first, ask(charge(key))));
  }
  answer.set("HTTP/1.1 200 OK\r\n" + type + date + "Content-Length: 0\r\n\r\n");
  const auto empty = ask(charge("empty"));
  EXPECT_EQ(empty.status, 200);
  EXPECT_TRUE(replays(empty, ask(charge("empty"))));
  EXPECT_EQ(upstream_->requests(), 3);
  answer.set("HTTP/1.1 200 OK\r\n" + type + "Transfer-Encoding: chunked\r\n\r\n");
  Connection client(gateway_->address());
  const auto head = client.exchange({.method = "HEAD", .target = "/"});
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.get("Content-Type"), "text/event-stream");
}

TEST_F(Streams, T25_an_error_is_judged_by_its_status_also_when_it_streams) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      const bool limited = request->target() == "/limited";
      connection.write(std::string("HTTP/1.1 ") + (limited ? "429 Slow" : "500 Oops") +
                       "\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "9\r\ndata: 1\n\n\r\n0\r\n\r\n");
    }
  }));
  EXPECT_EQ(ask(charge("broken")).get("Idempotency-Outcome"), "unknown");
  EXPECT_TRUE(is_problem(ask(charge("broken")), 409, "outcome_unknown"));
  auto limited = charge("limited");
  limited.target = "/limited";
  EXPECT_EQ(ask(limited).get("Idempotency-Outcome"), "released");
  EXPECT_EQ(ask(limited).body, "data: 1\n\n");
  EXPECT_EQ(upstream_->requests(), 3);
}

TEST_F(Streams, T25_unkeyed_events_arrive_one_by_one_too) {
  Gate second;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write(chunked_head);
    connection.write("9\r\ndata: 1\n\n\r\n");
    if (second.wait()) connection.write("9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  }));
  Connection client(gateway_->address());
  client.send({.method = "GET", .target = "/events"});
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "data: 1\n\n"));
  second.open();
  EXPECT_TRUE(read_until(client.socket(), seen, "0\r\n\r\n"));
}

TEST_F(Streams, T25_the_head_does_not_wait_for_the_first_event) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write(chunked_head);
    connection.read_some();  // Silent, until the gateway goes.
  }));
  for (const auto& request : {charge("k"), Request{.method = "GET", .target = "/events"}}) {
    Connection client(gateway_->address());
    client.send(request);
    std::string seen;
    EXPECT_TRUE(read_until(client.socket(), seen, "\r\n\r\n")) << request.method;
    EXPECT_TRUE(seen.starts_with("HTTP/1.1 201")) << seen;
  }
  expect_not_stored("k");
}

// The upstream's timeout is for each piece of a stream: this one takes longer as a whole.
TEST_F(Streams, T25_a_stream_may_last_longer_than_the_upstreams_timeout) {
  ASSERT_NO_FATAL_FAILURE(start(
      [](UpstreamConnection& connection) {
        if (!connection.read_request()) return;
        connection.write(chunked_head);
        for (int i = 0; i < 6; ++i) {
          ::poll(nullptr, 0, 400);  // A slow source; nothing waits for it to pass.
          connection.write("9\r\ndata: 1\n\n\r\n");
        }
        connection.write("0\r\n\r\n");
      },
      {"--upstream-timeout", "2s", "--lease", "8s"}));
  const auto answer = ask(charge("k"));
  EXPECT_EQ(answer.status, 201) << answer.trouble;
  EXPECT_EQ(answer.body.size(), 6 * 9U);
  expect_not_stored("k");
}

TEST_F(Streams, T25_sigterm_ends_streams_that_would_not_end) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write(chunked_head);
    connection.write("9\r\ndata: 1\n\n\r\n");
    connection.read_some();
  }));
  Connection keyed(gateway_->address());
  Connection unkeyed(gateway_->address());
  keyed.send(charge("k"));
  unkeyed.send({.method = "GET", .target = "/events"});
  std::string seen;
  std::string other;
  ASSERT_TRUE(read_until(keyed.socket(), seen, "data: 1\n\n"));
  ASSERT_TRUE(read_until(unkeyed.socket(), other, "data: 1\n\n"));
  EXPECT_EQ(gateway_->terminate(), 0) << "drained, not cut off";
  keyed.read_until_close();
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  expect_not_stored("k");
  EXPECT_EQ(upstream_->requests(), 2);
}

TEST_F(Streams, T27_trailers_of_an_answer_reach_nobody_neither_now_nor_on_replay) {
  ASSERT_NO_FATAL_FAILURE(start([](UpstreamConnection& connection) {
    while (connection.read_request()) {
      connection.write(
          "HTTP/1.1 200 OK\r\nTrailer: X-Checksum\r\nTransfer-Encoding: chunked\r\n\r\n"
          "3\r\nabc\r\n0\r\nX-Checksum: 1\r\nSet-Cookie: a=b\r\n\r\n");
    }
  }));
  const auto first = ask(charge("k"));
  const auto again = ask(charge("k"));
  EXPECT_TRUE(replays(first, again));
  Connection client(gateway_->address());
  const auto unkeyed = client.exchange({.method = "GET", .target = "/"});
  for (const auto& answer : {first, again, unkeyed}) {
    EXPECT_EQ(answer.body, "abc");
    for (const auto* name : {"X-Checksum", "Set-Cookie", "Trailer"}) {
      EXPECT_EQ(answer.raw.find(name), std::string::npos) << answer.raw;
    }
  }
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).body, "abc") << "and goes on";
}

}  // namespace
}  // namespace idem::test
