#include "store_conformance/harness.hpp"

/// A store counts its records without reading them.
namespace idem::test {
namespace {

std::uint64_t in(const Census& census, State state) {
  return census.by_state[static_cast<std::size_t>(state)];
}

TEST_P(StoreConformance, V31_records_are_counted_by_state) {
  EXPECT_EQ(ask(Count{}).by_state, Census{}.by_state);
  ask(a_complete(run(1)));
  ask(a_release(run(2)));
  ask(a_mark_unknown(run(3)));
  run(4);
  ask(an_accept(5));
  const auto counted = [&] {
    const Census census = ask(Count{});
    EXPECT_EQ(in(census, State::completed), 1u);
    EXPECT_EQ(in(census, State::failed_retryable), 1u);
    EXPECT_EQ(in(census, State::unknown), 1u);
    EXPECT_EQ(in(census, State::in_progress), 1u);
    EXPECT_EQ(in(census, State::pending), 1u);
    EXPECT_EQ(in(census, State::expired), 0u);
    EXPECT_EQ(census.now, clock.now());
  };
  counted();
  if (is_durable()) {
    reopen();
    counted();
  }
  clock.advance(retention + 1ms);
  sweep();
  reap();
  const Census later = ask(Count{});
  EXPECT_EQ(in(later, State::completed), 1u) << "the pending record has ended as timed out";
  EXPECT_EQ(in(later, State::expired), 1u);
  EXPECT_EQ(in(later, State::failed_retryable), 0u);
  EXPECT_EQ(in(later, State::unknown), 2u);
  EXPECT_EQ(in(later, State::in_progress), 0u);
  EXPECT_EQ(in(later, State::pending), 0u);
}

TEST_P(StoreConformance, V31_a_record_after_a_dead_one_is_counted_once) {
  ask(a_release(run(1)));
  clock.advance(retention + 1ms);  // It counts as gone, and still lies there.
  run(1, 2);
  const Census census = ask(Count{});
  EXPECT_EQ(in(census, State::failed_retryable), 0u);
  EXPECT_EQ(in(census, State::in_progress), 1u);
}

TEST_P(StoreConformance, V29_the_oldest_unknown_is_known) {
  EXPECT_FALSE(ask(Count{}).oldest_unknown);
  const Execute first = run(1);
  const Execute second = run(2);
  ask(a_mark_unknown(second));
  const StoreTime since_second = clock.now();
  clock.advance(5s);
  ask(a_mark_unknown(first));
  const StoreTime since_first = clock.now();
  EXPECT_EQ(ask(Count{}).oldest_unknown, since_second);
  if (is_durable()) reopen();
  EXPECT_EQ(ask(Count{}).oldest_unknown, since_second);
  ask(a_complete(second));
  EXPECT_EQ(ask(Count{}).oldest_unknown, since_first);
  ask(a_resolve(1, Resolve::As::completed, first.attempt.fence));
  EXPECT_FALSE(ask(Count{}).oldest_unknown);
}

TEST_P(StoreConformance, V31_a_lease_that_a_reserve_ended_is_counted_and_kept_as_a_decision) {
  const Execute first = run(1);
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  EXPECT_EQ(ask(Count{}).leases_ended, 0u);
  clock.advance(lease + 1ms);
  EXPECT_TRUE(std::get<Unknown>(ask(a_reserve(1, 2))).ended_lease);
  EXPECT_EQ(ask(Count{}).leases_ended, 1u);
  EXPECT_FALSE(std::get<Unknown>(ask(a_reserve(1, 2))).ended_lease);
  EXPECT_EQ(ask(Count{}).leases_ended, 1u);
  const auto entries = ask(ReadEvidence{key(1)});
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].source, "reserve");
  EXPECT_EQ(entries[0].evidence, "lease_expired");
  EXPECT_EQ(entries[0].fence, first.attempt.fence);
  EXPECT_EQ(entries[0].before, State::in_progress);
  EXPECT_EQ(entries[0].after, State::unknown);
}

TEST_P(StoreConformance, R28_a_reserve_that_runs_work_again_says_whether_it_ended_a_lease) {
  Reserve again = a_reserve(1, 1);
  again.lease_policy = LeasePolicy::rerun;
  EXPECT_FALSE(std::get<Execute>(ask(again)).ended_lease);
  clock.advance(lease + 1ms);
  again.token = token(2);
  const auto second = std::get<Execute>(ask(again));
  EXPECT_TRUE(second.again);
  EXPECT_TRUE(second.ended_lease);
  ask(a_release(second));
  again.token = token(3);
  const auto third = std::get<Execute>(ask(again));
  EXPECT_TRUE(third.again);
  EXPECT_FALSE(third.ended_lease) << "it was released";
}

TEST_P(StoreConformance, S19_a_sweep_is_kept_as_a_decision) {
  const Execute first = run(1);
  clock.advance(lease + 1ms);
  ASSERT_EQ(sweep().size(), 1u);
  const auto entries = ask(ReadEvidence{key(1)});
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].source, "sweeper");
  EXPECT_EQ(entries[0].fence, first.attempt.fence);
  EXPECT_EQ(entries[0].after, State::unknown);
  EXPECT_TRUE(entries[0].applied);
}

TEST_P(StoreConformance, V36_the_operator_who_released_a_stored_5xx_is_kept) {
  const Execute failed = run(1);
  ask(a_complete(failed, answer(503, "sorry")));
  ask(CacheBust{key(1), failed.attempt.fence, "deployed the fix", "operator:ada"});
  const auto entries = ask(ReadEvidence{key(1)});
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].source, "operator:ada");
}

TEST_P(StoreConformance, V31_only_a_record_that_ran_or_was_released_before_runs_again) {
  const Execute first = run(1);
  EXPECT_FALSE(first.again);
  ask(a_release(first));
  EXPECT_TRUE(run(1, 2).again);
  EXPECT_FALSE(run(2).again);
}

}  // namespace
}  // namespace idem::test
