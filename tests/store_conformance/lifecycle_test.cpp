#include "workers/lifecycle.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/harness.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <condition_variable>
#include <mutex>

/// Sweeper and reaper beside requests: in slices, with rests, and all of it in the end.
namespace idem::test {
namespace {

/// Notes how many records each call asked for, and how many came of them.
class Noting final : public ForwardingStore {
 public:
  explicit Noting(Store& behind) : ForwardingStore(behind) {}

  void call(StoreCall what, StoreCompletion done) override {
    const auto* const sweep = std::get_if<Sweep>(&what);
    const auto* const reap = std::get_if<Reap>(&what);
    if (sweep == nullptr && reap == nullptr) return inner().call(std::move(what), std::move(done));
    const std::size_t most = sweep != nullptr ? sweep->limit : reap->limit;
    inner().call(std::move(what), [this, most, done = std::move(done)](StoreResult result) mutable {
      note(most, result ? std::get<std::vector<LifecycleStep>>(*result).size() : 0);
      done(std::move(result));
    });
  }
  std::optional<std::uint64_t> asked() const noexcept override {
    if (!is_asked_on_) return ForwardingStore::asked();
    return ++asked_;
  }
  /// As if requests came all the time.
  void ask_on() { is_asked_on_ = true; }

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

  bool is_asked_on_ = false;
  mutable std::uint64_t asked_ = 0;
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
  noting.ask_on();
  metrics::Shard shard;
  std::size_t logged = 0;
  const LogSink log = [&](LogLevel, std::string_view event, auto fields) {
    if (event == "reaped") logged += std::stoul(fields.begin()->value);
  };
  auto runner = workers::keep_lifecycle(noting, log, shard);
  EXPECT_TRUE(noting.wait_for(2 * each));
  runner->stop();

  // The leases are a little late, and the answers by as much as was slept through.
  for (const std::size_t most : noting.asked_for()) EXPECT_GE(most, store().lifecycle_slice());
  for (std::size_t i = 0; i < each; ++i) ASSERT_EQ(state(i), State::expired) << i;
  for (std::size_t i = each; i < 2 * each; ++i) ASSERT_EQ(state(i), State::unknown) << i;
  EXPECT_EQ(shard.pruned.value(), each);
  EXPECT_EQ(shard.leases_ended.value(), each);
  EXPECT_EQ(logged, each) << "the log counts the reaped records";
}

INSTANTIATE_TEST_SUITE_P(Stores, KeptLifecycle, every_store(), name_of_store);

}  // namespace
}  // namespace idem::test
