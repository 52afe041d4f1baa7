#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/bulk.hpp"
#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

/// Answers above --response-body-max (1 MiB by default): given once, and never run again.
class Oversize : public Scripted {
 protected:
  static constexpr std::size_t whole = 3 * mebibyte;
  static constexpr std::size_t half = 2 * mebibyte;

  static std::string head(bool chunked) {
    const std::string created = "HTTP/1.1 201 Created\r\nLocation: /reports/7\r\n";
    return created + (chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                              : "Content-Length: " + std::to_string(whole) + "\r\n\r\n");
  }
  /// The first half of the body: above the limit, and not yet all.
  static std::string begun(bool chunked) {
    return chunked ? "200000\r\n" + pattern_text(half) + "\r\n" : pattern_text(half);
  }
  static std::string rest(bool chunked) {
    const auto bytes = pattern_text(whole).substr(half);
    return chunked ? "100000\r\n" + bytes + "\r\n0\r\n\r\n" : bytes;
  }

  void expect_not_stored(std::string_view key) {
    const auto retry = ask(charge(key));
    EXPECT_TRUE(is_problem(retry, 409, "response_not_stored"));
    EXPECT_NE(retry.body.find("\"original_status\":201"), std::string::npos) << retry.body;
    EXPECT_EQ(retry.get("Location"), "/reports/7");
  }
};

TEST_F(Oversize, T24_comes_whole_and_is_not_kept_however_it_is_framed) {
  for (const bool chunked : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(start([=](UpstreamConnection& connection) {
      while (connection.read_request()) {
        connection.write(head(chunked) + begun(chunked) + rest(chunked));
      }
    }));
    const std::string key = chunked ? "chunked" : "length";
    Connection client(gateway_->address());
    const auto first = client.exchange(charge(key));
    EXPECT_EQ(first.status, 201) << first.trouble;
    EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
    EXPECT_TRUE(first.body == pattern_text(whole));
    EXPECT_EQ(client.exchange(charge("next-" + key)).status, 201) << "both connections go on";
    expect_not_stored(key);
    EXPECT_EQ(upstream_->requests(), 2);
    EXPECT_EQ(upstream_->connections(), 1);
  }
}

TEST_F(Oversize, T24_a_kill_between_the_completion_and_the_end_of_the_answer) {
  for (const bool chunked : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(start([=](UpstreamConnection& connection) {
      if (!connection.read_request()) return;
      connection.write(head(chunked) + begun(chunked));
      connection.read_some();  // Until the gateway is gone.
    }));
    const std::string key = chunked ? "chunked" : "length";
    Connection client(gateway_->address());
    client.send(charge(key));
    std::string seen;
    ASSERT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
    gateway_->kill();
    gateway_->restart();
    ASSERT_TRUE(gateway_->running());
    for (int i = 0; i < 3; ++i) expect_not_stored(key);
    EXPECT_EQ(upstream_->requests(), 1);
  }
}

TEST_F(Oversize, T24_a_kill_between_the_completion_and_the_first_byte_of_the_answer) {
  IDEM_NEED_PROGRAM("idem-crash");
  GatewayOptions options;
  options.program = "idem-crash";
  options.environment = {"IDEM_CRASH_AT=settle_after_commit:1"};
  ASSERT_NO_FATAL_FAILURE(start(
      [](UpstreamConnection& connection) {
        if (connection.read_request()) connection.write(head(false) + begun(false) + rest(false));
      },
      {}, std::move(options)));
  Connection client(gateway_->address());
  client.send(charge("k"));
  EXPECT_EQ(client.read_until_close(), "") << "not a byte of it was sent";
  EXPECT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  for (int i = 0; i < 3; ++i) expect_not_stored("k");
  EXPECT_EQ(upstream_->requests(), 1);
}

TEST_F(Oversize, T24_T17_a_client_that_leaves_in_the_middle) {
  for (const bool chunked : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(start([=](UpstreamConnection& connection) {
      if (!connection.read_request()) return;
      connection.write(head(chunked) + begun(chunked) + rest(chunked));
      connection.read_some();
    }));
    const std::string key = chunked ? "chunked" : "length";
    Connection client(gateway_->address());
    client.send(charge(key));
    std::string seen;
    ASSERT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
    client.socket().reset();
    for (int i = 0; i < 3; ++i) expect_not_stored(key);
    EXPECT_EQ(upstream_->requests(), 1);
  }
}

/// An upstream that would cancel its work if its connection closed before it has written its
/// answer: far more than all buffers on the way hold. Behind the first two MiB the rest waits for
/// `go_on`.
class Dispatched : public Scripted {
 protected:
  static constexpr std::size_t whole = 48 * mebibyte;

  struct Work {
    Gate go_on;
    Gate done;  ///< All of it was written, and the connection is still there.
  };

  std::shared_ptr<Work> start_with(std::string head, bool chunked,
                                   std::vector<std::string> flags = {}) {
    auto work = std::make_shared<Work>();
    start(
        [work, head = std::move(head), chunked](UpstreamConnection& connection) {
          if (!connection.read_request()) return;
          if (connection.write(head) && write_body(connection, chunked, work->go_on)) {
            work->done.open();
          }
          connection.read_some();
        },
        std::move(flags));
    return work;
  }
  static bool write_body(UpstreamConnection& connection, bool chunked, Gate& go_on) {
    const std::string piece(mebibyte, 'x');
    const std::string framed = chunked ? "100000\r\n" + piece + "\r\n" : piece;
    for (std::size_t sent = 0; sent < whole; sent += mebibyte) {
      if (!connection.write(framed)) return false;
      if (sent == mebibyte && !go_on.wait()) return false;
    }
    return !chunked || connection.write("0\r\n\r\n");
  }
  static std::string created(bool chunked, const std::string& more = {}) {
    const std::string length = "Content-Length: " + std::to_string(whole);
    return "HTTP/1.1 201 Created\r\n" + more + (chunked ? "Transfer-Encoding: chunked" : length) +
           "\r\n\r\n";
  }
};

TEST_F(Dispatched, T17_S22_is_read_to_its_end_though_clients_leave_while_it_streams) {
  const std::string events = "Content-Type: text/event-stream\r\n";
  const std::pair<std::string, bool> answers[] = {
      {created(false), false}, {created(true), true}, {created(true, events), true}};
  int number = 0;
  for (const auto& [head, chunked] : answers) {
    SCOPED_TRACE(head);
    const auto key = "k" + std::to_string(number++);
    const auto work = start_with(head, chunked);
    Connection client(gateway_->address());
    client.send(charge(key));
    std::string seen;
    ASSERT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
    client.socket().reset();
    work->go_on.open();
    EXPECT_TRUE(work->done.wait()) << "the upstream's connection was closed before";
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "response_not_stored"));
    EXPECT_EQ(upstream_->requests(), 1);
    gateway_.reset();
  }
}

TEST_F(Dispatched, T17_S22_is_read_to_its_end_where_nobody_waits_for_it) {
  const std::string events = "Content-Type: text/event-stream\r\n";
  const std::pair<std::string, bool> answers[] = {
      {created(false), false}, {created(true), true}, {created(true, events), true}};
  int number = 0;
  for (const auto& [head, chunked] : answers) {
    SCOPED_TRACE(head);
    const auto key = "k" + std::to_string(number++);
    const auto work = start_with(head, chunked, {"--mode", "async"});
    EXPECT_EQ(ask(charge(key)).status, 202);
    work->go_on.open();
    EXPECT_TRUE(work->done.wait()) << "the upstream's connection was closed before";
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "response_not_stored"));
    EXPECT_EQ(upstream_->requests(), 1);
    gateway_.reset();
  }
}

// Nothing tells its end from a cut, so its outcome is unknown; but it is not cut by us.
TEST_F(Dispatched, T17_S22_an_answer_that_cannot_be_kept_is_read_to_its_end) {
  const auto work = start_with("HTTP/1.1 201 Created\r\n\r\n", false);
  EXPECT_TRUE(is_problem(ask(charge("k")), 502, "outcome_unknown"));
  work->go_on.open();
  EXPECT_TRUE(work->done.wait()) << "the upstream's connection was closed before";
}

TEST_F(Oversize, T24_T23_an_upstream_that_breaks_off_in_the_middle) {
  for (const bool chunked : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(start([=](UpstreamConnection& connection) {
      if (connection.read_request()) connection.write(head(chunked) + begun(chunked));
    }));
    const std::string key = chunked ? "chunked" : "length";
    const auto first = ask(charge(key));
    EXPECT_EQ(first.status, 0) << "a cut answer must not look whole";
    EXPECT_TRUE(first.trouble.starts_with("cut")) << first.trouble;
    expect_not_stored(key);
    EXPECT_EQ(upstream_->requests(), 1);
  }
}

}  // namespace
}  // namespace idem::test
