#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "support/jobs.hpp"
#include "support/live.hpp"
#include "support/shared_store.hpp"

/// Bulk work goes on after its process was killed, and decides about each record once.
namespace idem::test {
namespace {

class Jobs : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    if (GetParam() != "sqlite") store_ = std::make_unique<SharedStoreUrl>(GetParam());
    gateway_ = start();
  }

  std::unique_ptr<Gateway> start(std::vector<std::string> environment = {}) {
    GatewayOptions options{.upstream = provider_.address(),
                           .environment = std::move(environment),
                           .program = "idem-crash"};
    if (store_) {
      options.store_url = store_->url();
    } else {
      options.store = dir_.path() / "idem.db";
    }
    auto gateway = std::make_unique<Gateway>(std::move(options));
    EXPECT_TRUE(gateway->running()) << gateway->process().output();
    return gateway;
  }

  std::string begin(int expected, int rate) {
    const auto begun = admin_post(gateway_->admin(), "/v1/jobs", completing_all(expected, rate));
    EXPECT_EQ(begun.status, 202) << begun.raw;
    return parse_json(begun.body).value_or(Json{})["job"].string;
  }
  Json wait(const std::string& id, const std::function<bool(const Json&)>& is_enough) {
    return wait_for_job([&] { return gateway_->admin(); }, id, is_enough,
                        std::chrono::seconds(120));
  }

  /// Each record has one line of the job, which was applied, and the results say so.
  void expect_each_once(const std::string& id, int count) {
    const Json job = wait(id, is_over);
    EXPECT_EQ(job["state"].string, "ended");
    EXPECT_EQ(job["count"].integer, count);
    EXPECT_EQ(job["done"].integer, count);
    EXPECT_EQ(job["refused"].integer, 0);
    EXPECT_EQ(job["left"].integer, 0);
    const auto results = results_of(gateway_->admin(), id);
    EXPECT_EQ(results.size(), static_cast<std::size_t>(count));
    int lines = 0;
    for (const auto& [ref, result] : results) {
      EXPECT_EQ(result.verdict, "done") << ref;
      EXPECT_EQ(result.state, "completed") << ref;
      const auto seen = evidence_of_job(gateway_->admin(), ref, id);
      EXPECT_EQ(seen.applied, 1) << ref;
      EXPECT_EQ(seen.all, 1) << ref;
      lines += seen.applied;
    }
    RecordProperty("records", count);
    RecordProperty("applied_lines", lines);
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<SharedStoreUrl> store_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_P(Jobs, V29_a_thousand_records_are_decided_once_each_across_kills) {
  constexpr int count = 1'000;
  make_unknown(gateway_->address(), "k", count);
  std::mt19937 random(20'261'125);
  const std::string id = begin(count, 500);
  int kills = 0;
  for (int from = 0; kills < 4; ++kills) {
    from += std::uniform_int_distribution<>(60, 200)(random);
    const Json job =
        wait(id, [&](const Json& seen) { return seen["done"].integer >= from || is_over(seen); });
    if (is_over(job)) break;
    gateway_->restart();
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  EXPECT_EQ(kills, 4);
  expect_each_once(id, count);
  fmt::print("records={} kills={} store={}\n", count, kills, GetParam());
}

TEST_P(Jobs, V29_a_kill_between_a_decision_and_its_result_repeats_nothing) {
  constexpr int count = 40;
  make_unknown(gateway_->address(), "k", count);
  std::string id;
  for (const auto* const point : {"job_decided:6", "job_noted:2", "job_decided:1"}) {
    gateway_->restart({fmt::format("IDEM_CRASH_AT={}", point)});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    if (id.empty()) id = begin(count, 16);
    ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL) << point;
  }
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  expect_each_once(id, count);
}

TEST_P(Jobs, V29_a_job_that_was_cancelled_behind_a_kill_says_what_was_done) {
  constexpr int count = 30;
  make_unknown(gateway_->address(), "k", count);
  gateway_->restart({"IDEM_CRASH_AT=job_decided:7"});
  ASSERT_TRUE(gateway_->running());
  // Of a line with eight results, so that none of these seven is noted.
  const std::string id = begin(count, 8);
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  const auto cancelled =
      admin_post(gateway_->admin(), "/v1/jobs/" + id + "/cancel", R"({"reason":"stop"})");
  ASSERT_EQ(cancelled.status, 200) << cancelled.raw;
  const Json job = wait(id, is_over);
  EXPECT_EQ(job["state"].string, "cancelled");
  EXPECT_GE(job["done"].integer, 7);
  EXPECT_GT(job["left"].integer, 0);
  EXPECT_EQ(job["done"].integer + job["left"].integer, count);
  int completed = 0;
  const auto page = admin_get(gateway_->admin(), "/v1/keys?state=completed");
  const Json keys = parse_json(page.body).value_or(Json{});
  for (const Json& one : keys["keys"].items) {
    EXPECT_EQ(evidence_of_job(gateway_->admin(), one["ref"].string, id).applied, 1);
    ++completed;
  }
  EXPECT_EQ(completed, job["done"].integer);
}

INSTANTIATE_TEST_SUITE_P(Stores, Jobs, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

class SharedJobs : public Jobs {};

TEST_P(SharedJobs, V29_another_gateway_takes_over_the_job_of_a_killed_one) {
  constexpr int count = 200;
  make_unknown(gateway_->address(), "k", count);
  const auto other = start();
  const std::string id = begin(count, 100);
  wait(id, [](const Json& job) { return job["done"].integer >= 20; });
  gateway_->kill();
  EXPECT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  const Json job = wait_for_job([&] { return other->admin(); }, id, is_over);
  EXPECT_EQ(job["done"].integer, count);
  EXPECT_TRUE(other->process().wait_for_line("job_taken_over"));
  gateway_->restart();
  expect_each_once(id, count);
}

// The claimer sleeps in the middle of a decision until another process has taken its job over, and
// wakes up then.
TEST_P(SharedJobs, V29_a_claimer_that_was_thought_dead_decides_nothing_twice) {
  constexpr int count = 60;
  make_unknown(gateway_->address(), "k", count);
  gateway_->restart({"IDEM_STOP_AT=job_decided:9"});
  ASSERT_TRUE(gateway_->running());
  const auto other = start();
  const std::string id = begin(count, 20);
  ASSERT_TRUE(gateway_->process().wait_stopped());
  ASSERT_TRUE(other->process().wait_for_line("job_taken_over"));
  gateway_->carry_on();
  wait_for_job([&] { return other->admin(); }, id, is_over);
  expect_each_once(id, count);
}

INSTANTIATE_TEST_SUITE_P(Stores, SharedJobs, testing::Values("postgres"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace idem::test
