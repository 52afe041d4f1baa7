#include "workers/lifecycle.hpp"
#include "store_conformance/harness.hpp"
#include "workers/pace.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <condition_variable>
#include <mutex>

/// Sweeper and reaper beside requests: in slices, with rests, and all of it in the end.
namespace idem::test {
namespace {

using workers::Pace;

TEST(Pace, is_a_second_where_nothing_more_is_due) {
  Pace pace(limits::lifecycle_slice_embedded);
  EXPECT_EQ(pace.slice(), limits::lifecycle_slice_embedded);
  EXPECT_EQ(pace.rest_after(1ms, false), limits::lifecycle_interval);
  EXPECT_EQ(pace.rest_after(1s, false), limits::lifecycle_interval);
}

TEST(Pace, rests_as_long_as_it_works_and_never_long) {
  Pace pace(8);
  EXPECT_EQ(pace.rest_after(7ms, true), 7ms);
  EXPECT_EQ(pace.rest_after(0ms, true), 8 * limits::lifecycle_rest_each);
  EXPECT_EQ(Pace(16).rest_after(0ms, true), 16 * limits::lifecycle_rest_each);
  EXPECT_EQ(Pace(1'000).rest_after(0ms, true), limits::lifecycle_rest_max);
  EXPECT_EQ(pace.rest_after(10s, true), limits::lifecycle_rest_max);
}

TEST(Pace, takes_more_at_a_time_while_it_stays_behind) {
  Pace pace(limits::lifecycle_slice_embedded);
  std::vector<std::size_t> slices;
  const auto fall_behind = [&](Pace::Duration time) {
    for (Pace::Duration over{}; over < time;) over += 10ms + pace.rest_after(10ms, true);
    slices.push_back(pace.slice());
  };
  fall_behind(limits::lifecycle_patience - 1s);
  for (int i = 0; i < 5; ++i) fall_behind(limits::lifecycle_patience);
  const std::size_t one = limits::lifecycle_slice_embedded;
  EXPECT_EQ(slices, (std::vector<std::size_t>{one, 2 * one, 4 * one, 8 * one, 16 * one, 32 * one}));
  EXPECT_EQ(slices.back(), limits::sweep_batch);
  // What was enough for a while is begun with should more come, and forgotten if none does.
  pace.rest_after(10ms, false);
  EXPECT_EQ(pace.slice(), 4 * one);
  pace.rest_after(10ms, false);
  pace.rest_after(10ms, false);
  EXPECT_EQ(pace.slice(), one);
}

/// Notes how many records each call asked for, and how many came of them.
class Noting final : public Store {
 public:
  explicit Noting(Store& behind) : behind_(behind) {}

  void call(StoreCall what, StoreCompletion done) override {
    const auto* const sweep = std::get_if<Sweep>(&what);
    const auto* const reap = std::get_if<Reap>(&what);
    if (sweep == nullptr && reap == nullptr) return behind_.call(std::move(what), std::move(done));
    const std::size_t most = sweep != nullptr ? sweep->limit : reap->limit;
    behind_.call(std::move(what), [this, most, done = std::move(done)](StoreResult result) mutable {
      note(most, result ? std::get<std::vector<LifecycleStep>>(*result).size() : 0);
      done(std::move(result));
    });
  }
  void watch(std::shared_ptr<Watcher> watcher) override { behind_.watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return behind_.identity(); }
  std::size_t lifecycle_slice() const noexcept override { return behind_.lifecycle_slice(); }

  /// False: no so many steps came.
  bool wait_for(std::size_t steps) {
    std::unique_lock lock(mutex_);
    return noted_.wait_for(lock, 60s, [&] { return steps_ >= steps; });
  }
  std::vector<std::size_t> asked_for() {
    const std::lock_guard lock(mutex_);
    return asked_for_;
  }

 private:
  void note(std::size_t most, std::size_t steps) {
    {
      const std::lock_guard lock(mutex_);
      asked_for_.push_back(most);
      steps_ += steps;
    }
    noted_.notify_all();
  }

  Store& behind_;
  std::mutex mutex_;
  std::condition_variable noted_;
  std::vector<std::size_t> asked_for_;
  std::size_t steps_ = 0;
};

class KeptLifecycle : public StoreConformance {
 protected:
  Reserve reserve(std::size_t number) const {
    Reserve verb = a_reserve(1);
    verb.id.bytes[0] = static_cast<std::uint8_t>(number);
    verb.id.bytes[1] = static_cast<std::uint8_t>(number >> 8);
    verb.dispatched = true;
    return verb;
  }
  Execute begin(std::size_t number) { return std::get<Execute>(ask(reserve(number))); }
  std::optional<State> state(std::size_t number) {
    const auto found = ask(Find{reserve(number).id});
    return found ? std::optional(found->state) : std::nullopt;
  }
};

TEST_P(KeptLifecycle, S19_all_that_is_due_ends_slice_by_slice) {
  const std::size_t each = store().lifecycle_slice() * 5 / 2;
  for (std::size_t i = 0; i < each; ++i) ask(a_complete(begin(i)));
  clock.advance(retention - lease / 2);
  for (std::size_t i = each; i < 2 * each; ++i) begin(i);
  clock.advance(lease + 1s);
  Noting noting(store());
  metrics::Shard shard;
  std::size_t told = 0;
  const LogSink log = [&](LogLevel, std::string_view event, auto fields) {
    if (event == "reaped") told += std::stoul(fields.begin()->value);
  };
  auto runner = workers::keep_lifecycle(noting, log, shard);
  EXPECT_TRUE(noting.wait_for(2 * each));
  runner->stop();

  for (const std::size_t most : noting.asked_for()) EXPECT_EQ(most, store().lifecycle_slice());
  for (std::size_t i = 0; i < each; ++i) ASSERT_EQ(state(i), State::expired) << i;
  for (std::size_t i = each; i < 2 * each; ++i) ASSERT_EQ(state(i), State::unknown) << i;
  EXPECT_EQ(shard.pruned.value(), each);
  EXPECT_EQ(shard.leases_ended.value(), each);
  EXPECT_EQ(told, each) << "what was reaped is in the log";
}

INSTANTIATE_TEST_SUITE_P(Stores, KeptLifecycle, every_store(), name_of_store);

}  // namespace
}  // namespace idem::test
