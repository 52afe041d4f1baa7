#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/admin.hpp"
#include "support/live.hpp"
#include "support/shared_store.hpp"

// Two gateways, one store: each knows the other's records.

namespace idem::test {
namespace {

class TwoGateways : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    start({"--mode", "wait", "--wait-max", "5m", "--threads", "1"});
  }

  void start(const std::vector<std::string>& flags) {
    for (auto* gateway : {&first_, &second_}) {
      *gateway = std::make_unique<Gateway>(GatewayOptions{
          .upstream = provider_.address(), .store_url = store_.url(), .flags = flags});
      ASSERT_TRUE((*gateway)->running()) << (*gateway)->process().output();
    }
  }

  Response ask_first(const Request& request) { return send_once(first_->address(), request); }
  Response ask_second(const Request& request) { return send_once(second_->address(), request); }

  /// The first request of a key, at the first gateway; comes back once the provider holds it.
  Connection begin(std::string_view key, std::string_view faults) {
    Connection owner(first_->address());
    owner.send(charge(key, faults));
    EXPECT_TRUE(provider_.wait_held("h", 1));
    return owner;
  }
  /// A duplicate at the second gateway, which waits by then.
  Connection park(std::string_view key) {
    Connection waiter(second_->address());
    EXPECT_TRUE(waiter.send(charge(key)));
    until_waiting(second_->admin(), 1);
    return waiter;
  }

  Provider provider_;
  SharedStoreUrl store_{GetParam()};
  std::unique_ptr<Gateway> first_;
  std::unique_ptr<Gateway> second_;
};

INSTANTIATE_TEST_SUITE_P(Stores, TwoGateways, testing::ValuesIn(shared_store_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST_P(TwoGateways, V01_one_replays_the_answer_that_the_other_stored) {
  const auto answer = ask_first(charge("k"));
  EXPECT_EQ(answer.status, 201);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(replays(answer, ask_second(charge("k"))));
  EXPECT_TRUE(replays(answer, ask_first(charge("k"))));
  EXPECT_EQ(provider_.of_key("k").arrivals, 1);
}

TEST_P(TwoGateways, S05_another_request_under_the_key_is_misuse_at_both) {
  EXPECT_EQ(ask_first(charge("k")).status, 201);
  const auto other = charge("k", {}, R"({"amount":1251,"currency":"EUR"})");
  EXPECT_TRUE(is_problem(ask_second(other), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask_first(other), 422, "key_reused"));
  EXPECT_EQ(provider_.of_key("k").arrivals, 1);
}

TEST_P(TwoGateways, S07_a_waiter_at_one_is_woken_by_the_other) {
  auto owner = begin("k", "hold=h");
  auto waiter = park("k");
  EXPECT_FALSE(waiter.socket().readable_within(0));
  provider_.release("h");
  const auto answer = owner.read_response();
  EXPECT_EQ(answer.status, 201);
  EXPECT_TRUE(replays(answer, waiter.read_response()));
  EXPECT_EQ(provider_.of_key("k").arrivals, 1);
}

TEST_P(TwoGateways, S07_a_released_attempt_has_no_successor_at_the_other) {
  auto owner = begin("k", "hold=h,status=429");
  auto waiter = park("k");
  provider_.release("h");
  EXPECT_EQ(owner.read_response().status, 429);
  EXPECT_TRUE(is_problem(waiter.read_response(), 503, "attempt_released"));
  EXPECT_EQ(provider_.of_key("k").arrivals, 1);
  EXPECT_EQ(ask_second(charge("k")).status, 201);
}

TEST_P(TwoGateways, S07_a_record_that_turns_unknown_at_one_is_unknown_at_the_other) {
  auto owner = begin("k", "hold=h,drop-after");
  auto waiter = park("k");
  provider_.release("h");
  EXPECT_TRUE(is_problem(owner.read_response(), 502, "outcome_unknown"));
  EXPECT_TRUE(is_problem(waiter.read_response(), 409, "outcome_unknown"));
  EXPECT_TRUE(is_problem(ask_second(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_.of_key("k").effects, 1);
}

TEST_P(TwoGateways, V02_many_at_once_at_both_run_once) {
  constexpr int keys = 20;
  constexpr int clients = 8;
  std::vector<std::thread> threads;
  std::vector<std::vector<Response>> received(clients);
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      Connection connection((client % 2 == 0 ? first_ : second_)->address());
      for (int number = 0; number < keys; ++number) {
        received[static_cast<std::size_t>(client)].push_back(
            connection.exchange(charge(fmt::format("k-{}", number))));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t number = 0; number < keys; ++number) {
    for (const auto& answers : received) {
      EXPECT_EQ(answers[number].status, 201);
      EXPECT_EQ(answers[number].body, received.front()[number].body);
    }
    EXPECT_EQ(provider_.effects(fmt::format("k-{}", number)), 1);
  }
}

TEST_P(TwoGateways, V26_an_operators_order_at_one_applies_at_the_other) {
  auto owner = begin("k", "hold=h,drop-after");
  provider_.release("h");
  EXPECT_TRUE(is_problem(owner.read_response(), 502, "outcome_unknown"));
  const auto get = [&](const std::string& target) {
    const Request request{
        .method = "GET", .target = target, .fields = {{"Host", second_->admin()}}};
    return parse_json(send_once(second_->admin(), request).body).value_or(Json{});
  };
  const Json page = get("/v1/keys?state=unknown");
  ASSERT_EQ(page["keys"].items.size(), 1U);
  const Json shown = get("/v1/keys/" + page["keys"].items[0]["ref"].string);
  const Request order{
      .method = "POST",
      .target = "/v1/keys/" + page["keys"].items[0]["ref"].string + "/resolve",
      .fields = {{"Host", second_->admin()},
                 {"Content-Type", "application/json"},
                 {"Idem-Operator", "grace"}},
      .body = fmt::format(R"({{"as":"completed","fence":{},"evidence":"seen","reason":"looked",)"
                          R"("response":{{"status":201,"headers":[],"body_b64":"aGVyZQ=="}}}})",
                          shown["fence"].integer)};
  EXPECT_EQ(send_once(second_->admin(), order).status, 200);
  EXPECT_EQ(ask_first(charge("k")).body, "here");
}

TEST_P(TwoGateways, S02_a_node_with_other_routes_or_settings_is_refused) {
  EXPECT_EQ(ask_first(charge("k")).status, 201);
  Gateway other({.upstream = provider_.address(),
                 .store_url = store_.url(),
                 .flags = {"--key-scope", "tenant"}});
  EXPECT_FALSE(other.running());
  EXPECT_NE(other.process().output().find("key.scope is 'operation'"), std::string::npos)
      << other.process().output();
  EXPECT_TRUE(ask_second(charge("k")).get("Idempotent-Replayed"));
}

TEST_P(TwoGateways, S07_V12_how_soon_a_waiter_elsewhere_is_answered) {
  std::vector<double> millis;
  for (int round = 0; round < 21; ++round) {
    const auto key = fmt::format("k-{}", round);
    auto owner = begin(key, "hold=h");
    auto waiter = park(key);
    provider_.release("h");
    const auto answer = owner.read_response();
    const auto settled = std::chrono::steady_clock::now();
    EXPECT_TRUE(replays(answer, waiter.read_response()));
    millis.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - settled)
            .count());
  }
  std::ranges::sort(millis);
  fmt::print(
      "{}: a waiter at the other gateway was answered {:.1f} ms after the owner (median of {}, "
      "longest {:.1f})\n",
      GetParam(), millis[millis.size() / 2], millis.size(), millis.back());
}

}  // namespace
}  // namespace idem::test
