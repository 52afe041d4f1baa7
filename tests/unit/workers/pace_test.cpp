#include "workers/pace.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

/// How fast sweeper and reaper work: against a model of a store, on a clock of the test's.
namespace idem::workers {
namespace {

using namespace std::chrono_literals;
using Duration = Pace::Duration;

constexpr std::size_t embedded = limits::lifecycle_slice_embedded;

TEST(Pace, is_four_times_a_second_where_nothing_more_is_due) {
  Pace pace(embedded);
  EXPECT_EQ(pace.slice(false), embedded);
  EXPECT_EQ(pace.rest_after({}, 1ms, false), limits::lifecycle_interval);
  EXPECT_EQ(pace.rest_after({embedded - 1, 100ms}, 1s, false), limits::lifecycle_interval);
  EXPECT_FALSE(pace.leaves_some());
  EXPECT_EQ(pace.rest_after({limits::sweep_batch - 1}, 1ms, true), limits::lifecycle_interval);
}

TEST(Pace, rests_as_long_as_it_works_and_never_long) {
  Pace pace(8);
  EXPECT_EQ(pace.rest_after({8, 1s}, 7ms, false), 7ms);
  EXPECT_EQ(pace.rest_after({8, 1s}, 0ms, false), 8 * limits::lifecycle_rest_each);
  EXPECT_EQ(Pace(16).rest_after({16, 1s}, 0ms, false), 16 * limits::lifecycle_rest_each);
  EXPECT_EQ(Pace(100).rest_after({100, 1s}, 0ms, false), limits::lifecycle_rest_max);
  EXPECT_EQ(pace.rest_after({8, 1s}, 10s, false), limits::lifecycle_rest_max);
}

TEST(Pace, grows_with_the_lateness_and_falls_back_with_it) {
  Pace pace(8);
  const auto slice_at = [&](std::chrono::milliseconds late) {
    pace.rest_after({limits::sweep_batch, late}, 4ms, false);
    return pace.slice(false);
  };
  EXPECT_EQ(slice_at(limits::lifecycle_late_small), 8u);
  EXPECT_EQ(slice_at(limits::lifecycle_late_small + limits::lifecycle_late_doubling), 16u);
  EXPECT_EQ(slice_at(limits::lifecycle_late_small + 3 * limits::lifecycle_late_doubling), 64u);
  EXPECT_EQ(slice_at(24h), limits::sweep_batch);
  EXPECT_LT(pace.rest_after({limits::sweep_batch, 24h}, 4ms, false), 1us);
  EXPECT_EQ(slice_at(limits::lifecycle_late_small), 8u);
}

TEST(Pace, goes_on_where_a_store_looked_at_others_in_vain) {
  Pace pace(16);
  EXPECT_EQ(pace.rest_after({3, limits::lifecycle_late_more}, 1ms, false),
            16 * limits::lifecycle_rest_each);
  EXPECT_TRUE(pace.leaves_some());
  EXPECT_EQ(pace.rest_after({0, 1h}, 1ms, false), limits::lifecycle_interval);
}

TEST(Pace, of_an_idle_store_is_whole_batches_one_after_the_other) {
  Pace pace(embedded);
  EXPECT_EQ(pace.slice(true), limits::sweep_batch);
  EXPECT_EQ(pace.rest_after({limits::sweep_batch, 1s}, 5ms, true), 0ms);
  EXPECT_EQ(pace.slice(false), embedded) << "for who comes now";
}

TEST(Idleness, begins_when_nobody_has_asked_for_a_while) {
  Idleness idleness;
  const Idleness::Moment start{};
  EXPECT_FALSE(idleness.is_idle(0, start));
  EXPECT_FALSE(idleness.is_idle(0, start + limits::lifecycle_idle_after - 1ms));
  EXPECT_TRUE(idleness.is_idle(0, start + limits::lifecycle_idle_after));
  EXPECT_FALSE(idleness.is_idle(1, start + 1h)) << "a request came";
  EXPECT_TRUE(idleness.is_idle(1, start + 1h + limits::lifecycle_idle_after));
  EXPECT_FALSE(idleness.is_idle(std::nullopt, start + 9h)) << "others may use it";
}

/// A store of which `rate` records a second become due, from the first moment on.
struct Model {
  std::size_t slice;
  Duration each_call;
  Duration each_record;
  double rate;
  std::uint64_t due_at_once = 0;  ///< Besides, at the first moment.
};

struct Seen {
  Duration late{};         ///< In the end.
  Duration late_before{};  ///< After half of the time.
  Duration took{};         ///< Until nothing was due.
  std::size_t slice_max = 0;
  Duration rest_min = 1h;
};

/// `lasts`: how long it goes; where nothing becomes due, until nothing is.
Seen work(const Model& model, Duration lasts, bool is_idle = false) {
  Pace pace(model.slice);
  Seen seen;
  std::uint64_t done = 0;
  const auto due_by = [&](Duration now) {
    const auto seconds = std::chrono::duration<double>(now).count();
    return model.due_at_once + static_cast<std::uint64_t>(model.rate * seconds);
  };
  const auto late_at = [&](Duration now) {
    if (done >= due_by(now)) return Duration(0);
    if (done < model.due_at_once) return now;
    const double since = static_cast<double>(done - model.due_at_once) / model.rate;
    return now - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(since));
  };
  for (Duration now{}; now < lasts;) {
    const std::size_t slice = pace.slice(is_idle);
    const auto records = std::min<std::uint64_t>(slice, due_by(now) - done);
    const Pass pass{records, std::chrono::duration_cast<std::chrono::milliseconds>(late_at(now))};
    const Duration took = model.each_call + static_cast<std::int64_t>(records) * model.each_record;
    done += records;
    const Duration rest = pace.rest_after(pass, took, is_idle);
    now += took + rest;
    if (now < lasts / 2) seen.late_before = late_at(now);
    seen.late = late_at(now);
    seen.slice_max = std::max(seen.slice_max, slice);
    if (pace.leaves_some()) seen.rest_min = std::min(seen.rest_min, rest);
    if (model.rate == 0 && done == model.due_at_once) {
      seen.took = now;
      break;
    }
  }
  return seen;
}

// The time of each store beside requests: SQLite's calls come along with the next group, at most
// 2 ms later.
constexpr Model sqlite{embedded, 2ms, 17us, 0};
constexpr Model postgres{limits::lifecycle_slice_sql, 1ms, 80us, 0};

Model with_rate(Model model, double rate) {
  model.rate = rate;
  return model;
}

TEST(Pace, keeps_small_slices_while_they_are_enough) {
  for (const Model& model : {with_rate(sqlite, 1'500), with_rate(postgres, 2'000)}) {
    const Seen seen = work(model, 600s);
    EXPECT_EQ(seen.slice_max, model.slice);
    EXPECT_GE(seen.rest_min, 2ms);
    EXPECT_LT(seen.late, 1s);
  }
}

TEST(Pace, works_off_as_much_as_becomes_due) {
  // 13,000 new keys a second are as many answers and as many tombstones.
  for (const Model& model : {with_rate(sqlite, 4'000), with_rate(sqlite, 26'000),
                             with_rate(sqlite, 35'000), with_rate(postgres, 6'000)}) {
    const Seen seen = work(model, 600s);
    EXPECT_LT(seen.late, 20s) << model.rate << " a second";
    EXPECT_LT(seen.late, seen.late_before + 500ms) << "it does not grow";
    EXPECT_GT(seen.late, limits::lifecycle_late_small) << "no more than is needed";
  }
}

TEST(Pace, comes_back_after_the_initial_backlog) {
  Model model = with_rate(sqlite, 13'000);
  model.due_at_once = 1'000'000;
  const Seen seen = work(model, 300s);
  EXPECT_LT(seen.late, 16s);
}

TEST(Pace, leaves_records_due_at_one_moment_to_small_slices_for_a_while) {
  Model model = sqlite;
  model.due_at_once = 40'000;
  EXPECT_EQ(work(model, limits::lifecycle_late_small).slice_max, model.slice);
  EXPECT_LT(work(model, 60s).took, 18s);
}

TEST(Pace, empties_an_idle_store_as_fast_as_it_goes) {
  Model model = sqlite;
  model.due_at_once = 1'000'000;
  const Duration work_itself = 1'000'000 * model.each_record;
  const auto calls = static_cast<std::int64_t>(1'000'000 / limits::sweep_batch + 1);
  const Seen seen = work(model, 600s, true);
  EXPECT_LE(seen.took, work_itself + calls * model.each_call + limits::lifecycle_interval);
}

}  // namespace
}  // namespace idem::workers
