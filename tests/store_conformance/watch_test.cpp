#include "store_conformance/harness.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

/// §7: a waiter is notified of every change, whatever verb made it. The record is read afterwards,
/// so that a notice too many is allowed and one too few is not.
namespace idem::test {
namespace {

/// Notes each notice, and what a reader would have read at that moment.
class Notes final : public Watcher {
 public:
  void changed(const RecordId& id) noexcept override {
    const std::lock_guard lock(mutex_);
    changed_.push_back(id);
  }
  std::vector<RecordId> awaited() override { return {}; }
  /// True when it was notified of all these keys since the last question.
  bool notified(std::initializer_list<int> key_numbers) {
    const std::lock_guard lock(mutex_);
    const auto seen = std::exchange(changed_, {});
    return std::ranges::all_of(key_numbers, [&](int number) {
      return std::ranges::find(seen, key(number)) != seen.end();
    });
  }

 private:
  std::mutex mutex_;
  std::vector<RecordId> changed_;
};

class Watch : public StoreConformance {
 protected:
  Watch() { store().watch(notes_); }
  bool notified(int key_number) { return notes_->notified({key_number}); }

  std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

TEST_P(Watch, S07_every_ending_of_an_attempt_is_notified) {
  const auto completed = run(1);
  const auto released = run(2);
  const auto unknown = run(3);
  notified(1);
  ask(a_complete(completed));
  EXPECT_TRUE(notified(1));
  ask(a_release(released));
  EXPECT_TRUE(notified(2));
  ask(a_mark_unknown(unknown));
  EXPECT_TRUE(notified(3));
}

TEST_P(Watch, S07_a_lease_that_runs_out_is_notified_by_the_sweeper) {
  run(1);
  Reserve unsent = a_reserve(2);
  unsent.dispatched = false;
  run(unsent);
  notified(1);
  clock.advance(lease);
  EXPECT_EQ(sweep().size(), 2U);
  EXPECT_TRUE(notes_->notified({1, 2}));
  EXPECT_EQ(state(1), State::unknown);
  EXPECT_EQ(state(2), State::failed_retryable);
}

TEST_P(Watch, S07_a_lease_that_runs_out_is_notified_by_the_reserve_that_meets_it) {
  run(1);
  clock.advance(lease);
  notified(1);
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(1, 2))));
  EXPECT_TRUE(notified(1));
  Reserve unsent = a_reserve(2);
  unsent.dispatched = false;
  run(unsent);
  clock.advance(lease);
  notified(2);
  run(2, 3);
  EXPECT_TRUE(notified(2)) << "a new attempt under the same key";
}

TEST_P(Watch, S07_a_renewed_lease_is_notified) {
  const auto attempt = run(1);
  notified(1);
  ask(Renew{attempt.id, attempt.attempt, lease});
  EXPECT_TRUE(notified(1));
}

TEST_P(Watch, S07_evidence_and_a_cache_bust_are_notified) {
  const auto attempt = run(1);
  ask(a_mark_unknown(attempt));
  notified(1);
  ask(a_resolve(1, Resolve::As::completed, attempt.attempt.fence));
  EXPECT_TRUE(notified(1));
  const auto failed = run(2);
  ask(a_complete(failed, answer(500)));
  notified(2);
  ask(CacheBust{key(2), failed.attempt.fence, "operator"});
  EXPECT_TRUE(notified(2));
}

TEST_P(Watch, S07_acceptance_claim_and_reaping_are_notified) {
  ask(an_accept(1));
  EXPECT_TRUE(notified(1));
  const auto claimed = claim();
  EXPECT_TRUE(notified(1));
  ask(a_complete(claimed));
  notified(1);
  clock.advance(retention);
  EXPECT_EQ(reap().size(), 1U);
  EXPECT_TRUE(notified(1));
}

TEST_P(Watch, S07_a_call_that_changed_nothing_is_not_notified) {
  const auto attempt = run(1);
  notified(1);
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  ask(Complete{attempt.id, {attempt.attempt.fence + 1, token(9)}, answer(), ""});
  find(1);
  ask(List{});
  EXPECT_FALSE(notified(1));
}

/// Reads from within changed(), as the server of waiters does: it must see the notified change.
class Reader final : public Watcher {
 public:
  explicit Reader(Store& store) : store_(store) {}
  std::vector<RecordId> awaited() override { return {}; }
  void changed(const RecordId& id) noexcept override {
    idem::ask(store_, Find{id}, [this](auto found) {
      const std::lock_guard lock(mutex_);
      if (found && *found) states_.push_back((*found)->state);
      read_.notify_all();
    });
  }
  /// The result of its latest read, as soon as that is `state`.
  bool reads(State state) {
    std::unique_lock lock(mutex_);
    return read_.wait_for(lock, 10s, [&] { return !states_.empty() && states_.back() == state; });
  }

 private:
  Store& store_;
  std::mutex mutex_;
  std::condition_variable read_;
  std::vector<State> states_;
};

class WatchAndRead : public StoreConformance {};

TEST_P(WatchAndRead, S07_a_reader_sees_the_change_once_it_is_notified) {
  const auto reader = std::make_shared<Reader>(store());
  store().watch(reader);
  const auto attempt = run(1);
  ask(a_complete(attempt));
  EXPECT_TRUE(reader->reads(State::completed));
}

TEST_P(StoreConformance, S07_in_progress_names_the_attempt_and_the_rest_of_its_lease) {
  const auto attempt = run(1);
  clock.advance(20s);
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<InProgress>(outcome)) << describe(outcome);
  const auto& met = std::get<InProgress>(outcome);
  EXPECT_EQ(met.id, attempt.id);
  EXPECT_EQ(met.fence, attempt.attempt.fence);
  EXPECT_EQ(met.locked_until, find(1)->locked_until);
  EXPECT_EQ(met.locked_until - met.lease_remaining, clock.now());
}

INSTANTIATE_TEST_SUITE_P(Stores, Watch, every_store(), name_of_store);
INSTANTIATE_TEST_SUITE_P(Stores, WatchAndRead, every_store(), name_of_store);

}  // namespace
}  // namespace idem::test
