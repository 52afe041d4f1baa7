#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <deque>
#include <thread>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Conflict = Live;

TEST_F(Conflict, T67_V10_in_progress_carries_the_time_to_retry) {
  Connection first(gateway_->address());
  first.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto duplicate = ask(charge("k"));
  EXPECT_TRUE(is_problem(duplicate, 409, "in_progress"));
  EXPECT_EQ(json_text(duplicate.body, "retry"), "later");
  EXPECT_EQ(json_text(duplicate.body, "state"), "in_progress");
  const int seconds = std::atoi(duplicate.get("Retry-After").value_or("0").c_str());
  EXPECT_GE(seconds, 1);
  EXPECT_LE(seconds, 60) << "more than the lease can last";
  provider_->release("h");
  // Named first: the order in which a call's arguments are evaluated is the compiler's choice.
  const auto answer = first.read_response();
  EXPECT_TRUE(replays(answer, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Conflict, V01_two_at_one_instant_get_the_same_result) {
  for (int round = 0; round < 50; ++round) {
    const auto key = fmt::format("k{}", round);
    Connection one(gateway_->address());
    Connection two(gateway_->address());
    one.send(charge(key));
    two.send(charge(key));
    const auto a = one.read_response();
    const auto b = two.read_response();
    EXPECT_TRUE(a.status == 201 || b.status == 201);
    const auto settled = ask_until_settled(gateway_->address(), charge(key));
    for (const auto& answer : {a, b}) {
      EXPECT_TRUE(answer.status == 201 ? replays(answer, settled)
                                       : is_problem(answer, 409, "in_progress"));
    }
    EXPECT_EQ(effects(key), 1);
  }
}

/// Reads answers as they come until `wanted` of the connections have one.
std::vector<Response> read_answers(std::deque<Connection>& connections, std::vector<bool>& done,
                                   std::size_t wanted) {
  std::vector<Response> answers;
  while (answers.size() < wanted) {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (done[i]) continue;
      waiting.push_back({.fd = connections[i].socket().fd(), .events = POLLIN, .revents = 0});
      whose.push_back(i);
    }
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()) * 1000) <= 0) {
      ADD_FAILURE() << "only " << answers.size() << " of " << wanted << " answered";
      return answers;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      answers.push_back(connections[whose[i]].read_response());
      done[whose[i]] = true;
    }
  }
  return answers;
}

TEST_F(Conflict, V12_a_thousand_duplicates_are_one_dispatch) {
  constexpr std::size_t count = 1000;
  std::deque<Connection> connections;
  for (std::size_t i = 0; i < count; ++i) connections.emplace_back(gateway_->address());
  for (auto& connection : connections) ASSERT_TRUE(connection.send(charge("k", "hold=h")));
  ASSERT_TRUE(provider_->wait_held("h", 1));

  std::vector<bool> done(count, false);
  const auto refused = read_answers(connections, done, count - 1);
  for (const auto& answer : refused) ASSERT_TRUE(is_problem(answer, 409, "in_progress"));
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(ask(charge("another")).status, 201) << "others must not suffer";

  provider_->release("h");
  const auto winner = read_answers(connections, done, 1);
  ASSERT_EQ(winner.size(), 1U);
  EXPECT_TRUE(replays(winner.front(), ask(charge("k"))));
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Conflict, V12_without_a_hold_too_none_runs_twice) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([this] {
      Connection connection(gateway_->address());
      for (int key = 0; key < 100; ++key) connection.exchange(charge(fmt::format("k{}", key)));
    });
  }
  for (auto& client : clients) client.join();
  const auto ledger = provider_->ledger();
  EXPECT_EQ(ledger.effects, 100);
  EXPECT_EQ(ledger.arrivals, 100);
  for (const auto& [key, counts] : ledger.keys) EXPECT_EQ(counts.effects, 1) << key;
}

TEST_F(Conflict, V03_two_tenants_with_one_key_are_independent) {
  const auto acme = charge("k");
  const auto globex = with(without(acme, "X-Tenant-Id"), "X-Tenant-Id", "globex");
  const auto first = ask(acme);
  const auto second = ask(globex);
  EXPECT_NE(first.body, second.body);
  EXPECT_FALSE(second.get("Idempotent-Replayed"));
  EXPECT_TRUE(replays(first, ask(acme)));
  EXPECT_TRUE(replays(second, ask(globex)));
  EXPECT_EQ(effects("k"), 2);
}

}  // namespace
}  // namespace idem::test
