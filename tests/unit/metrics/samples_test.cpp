#include "metrics/samples.hpp"

#include <gtest/gtest.h>

#include <idem/console_limits.hpp>

namespace idem::metrics {
namespace {

using namespace std::chrono_literals;

class SamplesOf : public testing::Test {
 protected:
  /// One span passes, in which so many first requests and replays came.
  void pass(std::uint64_t first, std::uint64_t replays, Levels levels = {}) {
    reserve(Outcome::created, first);
    reserve(Outcome::replay, replays);
    now_ += limits::samples_interval;
    samples_.add(registry_.totals(), levels, now_);
  }
  void reserve(Outcome outcome, std::uint64_t count) {
    shard_.reserves[static_cast<std::size_t>(outcome)].add(count);
  }
  static std::uint64_t of(const Sample& sample, Outcome outcome) {
    return sample.reserves[static_cast<std::size_t>(outcome)];
  }
  std::vector<Sample> hour() { return samples_.hour(registry_.totals(), {}, now_); }
  std::vector<Sample> day() { return samples_.day(registry_.totals(), {}, now_); }

  Registry registry_{TenantLabel::off, Secret{}};
  Shard& shard_ = registry_.add_shard();
  Samples::Time now_{Samples::Time(1'800'000'000s)};
  Samples samples_{now_};
};

TEST_F(SamplesOf, a_span_has_what_happened_in_it_and_the_last_one_still_runs) {
  pass(3, 1);
  pass(5, 0);
  reserve(Outcome::key_misuse, 2);
  now_ += 4s;
  const auto samples = hour();
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(of(samples[0], Outcome::created), 3U);
  EXPECT_EQ(of(samples[0], Outcome::replay), 1U);
  EXPECT_EQ(of(samples[1], Outcome::created), 5U);
  EXPECT_EQ(samples[1].length, 10s);
  EXPECT_EQ(of(samples[2], Outcome::created), 0U);
  EXPECT_EQ(of(samples[2], Outcome::key_misuse), 2U);
  EXPECT_EQ(samples[2].length, 4s);
  EXPECT_EQ(samples[2].end, now_);
}

TEST_F(SamplesOf, nothing_is_lost_between_the_spans_of_an_hour_and_of_a_day) {
  for (std::size_t i = 0; i < limits::samples_of_hour + 90; ++i) pass(i % 7, 1);
  EXPECT_EQ(hour().size(), limits::samples_of_hour + 1);
  std::uint64_t replays = 0;
  for (const Sample& sample : day()) replays += of(sample, Outcome::replay);
  EXPECT_EQ(replays, limits::samples_of_hour + 90);
  EXPECT_EQ(day().size(), (limits::samples_of_hour + 90) / limits::samples_short_per_long + 1);
  EXPECT_EQ(day().front().length, limits::samples_interval * limits::samples_short_per_long);
}

TEST_F(SamplesOf, a_day_keeps_the_worst_level_of_each_span) {
  pass(0, 0, {.store_answers = false, .unknown = 7, .dead_letters = 1});
  for (std::size_t i = 1; i < limits::samples_short_per_long; ++i) pass(0, 0, {.unknown = 2});
  pass(0, 0, {.unknown = 1});
  const auto samples = day();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_FALSE(samples[0].levels.store_answers);
  EXPECT_EQ(samples[0].levels.unknown, 7U);
  EXPECT_EQ(samples[0].levels.dead_letters, 1U);
  EXPECT_TRUE(samples[1].levels.store_answers);
  EXPECT_EQ(samples[1].levels.unknown, 1U);
  EXPECT_EQ(samples[1].levels.dead_letters, std::nullopt) << "not known, which is not none";
}

TEST_F(SamplesOf, times_are_those_of_the_span) {
  shard_.reserve.observe(2ms);
  shard_.settle.observe(4ms);
  pass(1, 0);
  shard_.upstream.observe(30ms);
  pass(0, 0);
  const auto samples = hour();
  ASSERT_TRUE(samples[0].added_ms);
  EXPECT_DOUBLE_EQ(*samples[0].added_ms, 6);
  EXPECT_EQ(samples[0].upstream_p50_ms, std::nullopt);
  EXPECT_EQ(samples[1].added_ms, std::nullopt);
  ASSERT_TRUE(samples[1].upstream_p50_ms);
  EXPECT_GT(*samples[1].upstream_p50_ms, 25);
  EXPECT_LE(*samples[1].upstream_p50_ms, 50);
}

TEST_F(SamplesOf, a_clock_that_goes_back_makes_no_negative_span) {
  now_ -= 1h;
  EXPECT_EQ(hour().back().length, 0ms);
}

TEST_F(SamplesOf, answers_of_all_routes_count_and_5xx_are_errors) {
  for (const auto& [route, status] : {std::pair{0, 201}, {1, 500}, {1, 599}, {2, 422}, {0, 0}}) {
    shard_.answers[static_cast<std::size_t>(route)][place_of_status(status)].add();
  }
  EXPECT_EQ(hour().back().requests, 5U);
  EXPECT_EQ(hour().back().server_errors, 2U);
}

}  // namespace
}  // namespace idem::metrics
