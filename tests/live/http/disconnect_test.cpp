#include <gtest/gtest.h>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Disconnect = Live;

TEST_F(Disconnect, T17_V20_a_client_that_leaves_changes_nothing) {
  int number = 0;
  for (const bool reset : {true, false}) {
    const auto key = "k" + std::to_string(number++);
    const auto hold = "h-" + key;
    Connection client(gateway_->address());
    client.send(charge(key, "hold=" + hold));
    ASSERT_TRUE(provider_->wait_held(hold, 1));
    reset ? client.socket().reset() : client.socket().close();
    // Something else is served meanwhile, so the gateway has had its chance to see the client go.
    EXPECT_EQ(ask(charge("other-" + key)).status, 201);
    provider_->release(hold);
    const auto retry = ask_until_settled(gateway_->address(), charge(key));
    EXPECT_EQ(retry.status, 201) << retry.raw;
    EXPECT_EQ(retry.get("Idempotent-Replayed"), "true");
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Disconnect, T17_a_client_that_only_closed_its_sending_side_is_answered) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h"));
  client.socket().half_close();
  ASSERT_TRUE(provider_->wait_held("h", 1));
  provider_->release("h");
  const auto first = client.read_response();
  EXPECT_EQ(first.status, 201) << first.trouble;
  EXPECT_TRUE(replays(first, ask(charge("k"))));
}

TEST_F(Disconnect, P30_an_incomplete_body_reserves_and_dispatches_nothing) {
  for (int i = 0; i < 3; ++i) {
    Connection client(gateway_->address());
    const auto whole = to_wire(charge("k"));
    client.send_raw(std::string_view(whole).substr(0, whole.size() - 3));
    client.socket().half_close();
    client.read_until_close();
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  const auto answer = ask(charge("k"));
  EXPECT_EQ(answer.status, 201) << answer.raw;
  EXPECT_FALSE(answer.get("Idempotent-Replayed"));
}

TEST_F(Disconnect, P30_an_incomplete_chunked_body_neither) {
  Connection client(gateway_->address());
  auto request = with(charge("k", "", ""), "Transfer-Encoding", "chunked");
  request.body = "5\r\nhello\r\n";
  client.send(request);
  client.socket().half_close();
  client.read_until_close();
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Disconnect, P27_pipelined_keyed_requests_are_answered_in_order) {
  Connection client(gateway_->address());
  std::string all;
  for (const auto* key : {"a", "b", "a", "c"}) all += to_wire(charge(key));
  client.send_raw(all);
  const auto a = client.read_response();
  const auto b = client.read_response();
  const auto again = client.read_response();
  const auto c = client.read_response();
  EXPECT_EQ(a.status, 201);
  EXPECT_EQ(b.status, 201);
  EXPECT_TRUE(replays(a, again));
  EXPECT_EQ(c.status, 201);
  EXPECT_EQ(provider_->ledger().effects, 3);
}

TEST_F(Disconnect, a_chunked_request_is_the_same_request_as_one_with_a_length) {
  const auto first = ask(charge("k", "", "hello world"));
  auto chunked = with(charge("k", "", ""), "Transfer-Encoding", "chunked");
  chunked.body = "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-Trailer: t\r\n\r\n";
  EXPECT_TRUE(replays(first, ask(chunked)));
}

TEST_F(Disconnect, a_body_sent_byte_by_byte_is_the_same_request) {
  const auto first = ask(charge("k"));
  Connection client(gateway_->address());
  for (const char byte : to_wire(charge("k"))) client.send_raw(std::string_view(&byte, 1));
  EXPECT_TRUE(replays(first, client.read_response()));
}

}  // namespace
}  // namespace idem::test
