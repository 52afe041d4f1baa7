#include <gtest/gtest.h>

#include <csignal>

#include "support/live.hpp"

/// The duties of a stopping gateway towards the requests that it has accepted.
namespace idem::test {
namespace {

class Drain : public Live {
 protected:
  std::vector<std::string> flags() const override { return {"--threads", "1"}; }

  /// SIGTERM, and back once every connection knows of it: the idle one is let go at that moment.
  void tell_to_stop() {
    Connection idle(gateway_->address());
    EXPECT_EQ(idle.exchange({.method = "GET", .target = "/echo"}).status, 200);
    gateway_->process().signal(SIGTERM);
    EXPECT_TRUE(idle.closed_by_peer());
  }
};

TEST_F(Drain, P22_requests_in_flight_are_settled_and_answered_with_close) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  tell_to_stop();
  EXPECT_FALSE(Socket::connect_to(gateway_->address()).open()) << "nobody new is let in";
  provider_->release("h");
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 201) << answer.trouble;
  EXPECT_EQ(answer.get("Idempotency-Outcome"), "stored");
  EXPECT_EQ(answer.get("Connection"), "close");
  EXPECT_TRUE(client.closed_by_peer());
  client.socket().close();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(replays(answer, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Drain, S13_readiness_reports_the_drain_while_the_rest_is_finished) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  tell_to_stop();
  const auto ready =
      send_once(gateway_->admin(),
                {.method = "GET", .target = "/readyz", .fields = {{"Host", gateway_->admin()}}});
  EXPECT_TRUE(is_problem(ready, 503, "draining"));
  provider_->release("h");
  EXPECT_EQ(client.read_response().status, 201);
}

TEST_F(Drain, P22_a_streamed_answer_is_finished_too) {
  Connection client(gateway_->address());
  client.send({.method = "PUT", .target = "/charges?fault=hold=h,size=300000", .body = "{}"});
  ASSERT_TRUE(provider_->wait_held("h", 1));
  tell_to_stop();
  provider_->release("h");
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 201) << answer.trouble;
  EXPECT_EQ(answer.body.size(), 300'000U);
  EXPECT_EQ(answer.get("Connection"), "close");
  client.socket().close();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
}

// Bytes that arrive at a closed socket are answered with a reset, and a reset erases what the
// client has not read yet: so the sending side is closed first, and the rest is read for a while.
TEST_F(Drain, P22_the_last_answer_survives_a_client_that_still_sends) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  // The next request of the same client is on its way already, and large.
  const auto next = to_wire(charge("next", "", std::string(150'000, 'x')));
  ASSERT_TRUE(client.send_raw(std::string_view(next).substr(0, 100'000)));
  tell_to_stop();
  provider_->release("h");
  // It is still being sent after the answer was written.
  ASSERT_TRUE(client.socket().readable_within(30'000));
  EXPECT_TRUE(client.send_raw(std::string_view(next).substr(100'000)));
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 201) << answer.trouble;
  EXPECT_EQ(answer.get("Connection"), "close");
  EXPECT_TRUE(client.closed_by_peer());
  client.socket().close();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  EXPECT_EQ(provider_->of_key("next").arrivals, 0) << "an unanswered request was not run";
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Drain, a_body_that_is_still_arriving_is_waited_for) {
  Connection client(gateway_->address());
  const auto whole = to_wire(charge("k"));
  ASSERT_TRUE(client.send_raw(std::string_view(whole).substr(0, whole.size() - 5)));
  tell_to_stop();
  client.send_raw(std::string_view(whole).substr(whole.size() - 5));
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 201) << answer.trouble;
  EXPECT_EQ(answer.get("Connection"), "close");
  client.socket().close();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
}

TEST_F(Drain, P22_a_body_that_never_arrives_does_not_keep_it_from_ending) {
  Connection head(gateway_->address());
  ASSERT_TRUE(head.send_raw("POST /charges HTTP/1.1\r\nHost: a\r\nX-"));
  Connection client(gateway_->address());
  const auto whole = to_wire(charge("k"));
  ASSERT_TRUE(client.send_raw(std::string_view(whole).substr(0, whole.size() - 5)));
  Connection relayed(gateway_->address());
  const std::string body(5'000, 'x');
  const auto put = to_wire({.method = "PUT", .target = "/charges", .body = body});
  ASSERT_TRUE(relayed.send_raw(std::string_view(put).substr(0, put.size() - 5)));
  tell_to_stop();
  const auto answer = client.read_response();
  EXPECT_TRUE(is_problem(answer, 503, "draining")) << answer.raw;
  EXPECT_EQ(answer.get("Connection"), "close");
  EXPECT_EQ(head.read_response().status, 408);
  const auto cut = relayed.read_response();
  EXPECT_TRUE(is_problem(cut, 503, "draining")) << cut.raw;
  EXPECT_EQ(cut.body.find("nothing was run"), std::string::npos) << "the upstream has a part";
  EXPECT_EQ(cut.body.find("retry"), std::string::npos) << cut.body;
  for (auto* one : {&head, &client, &relayed}) one->socket().close();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  EXPECT_EQ(effects("k"), 0);
}

TEST_F(Drain, P22_an_answer_that_nobody_reads_does_not_keep_it_from_ending) {
  Connection(gateway_->address()).exchange(charge("k", "size=1000000"));
  Socket client = Socket::connect_with_small_window(gateway_->address(), "127.0.0.1");
  ASSERT_TRUE(client.send_all(to_wire(charge("k", "size=1000000"))));
  ASSERT_TRUE(client.readable_within(30'000));
  tell_to_stop();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  gateway_->restart();
  const auto again = ask(charge("k", "size=1000000"));
  EXPECT_EQ(again.get("Idempotent-Replayed"), "true") << "it was stored";
  EXPECT_EQ(effects("k"), 1);
}

}  // namespace
}  // namespace idem::test
