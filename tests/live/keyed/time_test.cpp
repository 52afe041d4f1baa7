#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/moved_clock.hpp"

/// Records as time passes, over the wire, by a clock that the test moves.
namespace idem::test {
namespace {

constexpr std::int64_t hour_seconds = 3600;
constexpr std::int64_t day_seconds = 24 * hour_seconds;
constexpr std::int64_t year = 365 * day_seconds;

class Time : public Live {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    provider_ = std::make_unique<Provider>();
    start();
  }

  void start(std::vector<std::string> flags = {}) {
    gateway_.reset();  // One store, one process.
    auto options = this->options(provider_->address());
    options.flags = std::move(flags);
    options.program = "idem-crash";
    options.environment = {clock_.environment()};
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    clock_.move_also_under(dir_.path() / "idem.db");
  }

  MovedClock clock_;
};

TEST_F(Time, T49_V25_a_retry_after_the_expiry_is_refused_and_not_run) {
  const auto first = ask(charge("k"));
  ASSERT_EQ(first.status, 201);
  clock_.pass(day_seconds - hour_seconds);
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  clock_.pass(hour_seconds + 1);
  const auto late = ask(charge("k"));
  EXPECT_TRUE(is_problem(late, 410, "key_expired"));
  EXPECT_EQ(json_text(late.body, "retry"), "never");
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":1})")), 422, "key_reused"))
      << "misuse is decided first, in every state";
  clock_.pass(29 * day_seconds);
  EXPECT_TRUE(is_problem(ask(charge("k")), 410, "key_expired")) << "the tombstone stays";
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Time, V25_a_key_runs_again_only_where_that_was_accepted) {
  ASSERT_NO_FATAL_FAILURE(start({"--tombstone", "0s", "--accept-rerun-after-expiry"}));
  ASSERT_EQ(ask(charge("k")).status, 201);
  clock_.pass(day_seconds + 1);
  const auto again = ask(charge("k"));
  EXPECT_EQ(again.status, 201);
  EXPECT_FALSE(again.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(Time, T50_V30_a_replay_refreshes_nothing) {
  const auto first = ask(charge("k"));
  const auto expires = first.get("Idempotency-Expires");
  ASSERT_TRUE(expires);
  for (int i = 0; i < 3; ++i) {
    clock_.pass(7 * hour_seconds);
    EXPECT_EQ(ask(charge("k")).get("Idempotency-Expires"), expires);
  }
  clock_.pass(3 * hour_seconds + 1);
  EXPECT_EQ(ask(charge("k")).status, 410);
}

TEST_F(Time, S15_a_released_key_is_forgotten_after_its_retention) {
  ASSERT_EQ(ask(charge("k", "refuse=429")).status, 429);
  auto other = charge("k", "", R"({"amount":2})");
  EXPECT_EQ(ask(other).status, 422) << "released is not forgotten";
  clock_.pass(day_seconds + 1);
  EXPECT_EQ(ask(other).status, 201);
}

TEST_F(Time, T51_a_step_of_the_wall_clock_expires_nothing) {
  const auto first = ask(charge("k"));
  ASSERT_EQ(first.status, 201);
  ASSERT_EQ(ask(charge("u", "status=500")).status, 500);
  for (const auto step : {10 * year, -20 * year, 10 * year}) {
    clock_.step_wall(step);
    EXPECT_TRUE(replays(first, ask(charge("k")))) << step;
    gateway_->kill();
    ASSERT_NO_FATAL_FAILURE(start());  // Within one boot the time that passed is known.
    EXPECT_TRUE(replays(first, ask(charge("k")))) << "after a restart, " << step;
    EXPECT_TRUE(is_problem(ask(charge("u")), 409, "outcome_unknown"));
  }
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Time, T52_V26_the_reaper_drops_due_records_while_traffic_runs) {
  constexpr int old_keys = 600;  // More than two of its batches.
  Connection client(gateway_->address());
  for (int i = 0; i < old_keys; ++i) {
    ASSERT_EQ(client.exchange(charge(fmt::format("old-{}", i))).status, 201);
  }
  ASSERT_EQ(client.exchange(charge("unknown", "status=500")).status, 500);
  Connection owner(gateway_->address());
  owner.send(charge("running", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));

  std::atomic<bool> stop = false;
  int served = 0;
  std::thread traffic([&] {
    Connection other(gateway_->address());
    for (; !stop; ++served) {
      const auto request = charge(fmt::format("new-{}", served));
      auto answer = other.exchange(request);
      // The clock was moved between its reserve and its dispatch: its lease was over before it ran.
      while (answer.status == 409 && json_text(answer.body, "code") == "in_progress") {
        answer = other.exchange(request);
      }
      EXPECT_EQ(answer.status, 201) << answer.raw;
    }
  });
  clock_.pass(day_seconds + 1);  // Their bodies go, their tombstones stay;
  EXPECT_TRUE(gateway_->process().wait_for_line("reaped"));
  EXPECT_TRUE(is_problem(client.exchange(charge("old-0")), 410, "key_expired"));
  clock_.pass(31 * day_seconds);  // and then those.
  const auto last = charge(fmt::format("old-{}", old_keys - 1));
  EXPECT_EQ(client.exchange(last).status, 201) << "past its tombstone a key is new";
  stop = true;
  traffic.join();
  EXPECT_GT(served, 0);

  EXPECT_TRUE(is_problem(client.exchange(charge("unknown")), 409, "outcome_unknown"))
      << "never reaped";
  provider_->release("h");
  const auto running = owner.read_response();
  EXPECT_EQ(running.status, 201) << "its lease is long over, and its own answer counts";
  EXPECT_TRUE(replays(running, client.exchange(charge("running"))));
  EXPECT_EQ(effects("running"), 1);
  EXPECT_EQ(effects("unknown"), 1);
}

}  // namespace
}  // namespace idem::test
