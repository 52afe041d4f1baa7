#include "store_conformance/harness.hpp"

/// protocol.md §3, row by row. Which of them nobody may add is in transition_table_test.cpp.
namespace idem::test {
namespace {

Reserve not_dispatched(int number, int token_number = 1) {
  Reserve verb = a_reserve(number, token_number);
  verb.dispatched = false;
  return verb;
}

Reserve with_policy(int number, LeasePolicy policy, int token_number = 1) {
  Reserve verb = a_reserve(number, token_number);
  verb.lease_policy = policy;
  return verb;
}

TEST_P(StoreConformance, S03_accept_stores_the_request_as_pending) {
  EXPECT_TRUE(is<Pending>(ask(an_accept(1, std::string("a\0b", 3)))));
  const auto record = find(1);
  EXPECT_EQ(record->state, State::pending);
  EXPECT_EQ(record->stored_request, std::string("a\0b", 3));
  EXPECT_EQ(record->expires_at, clock.now() + retention) << "from acceptance";
}

TEST_P(StoreConformance,
       S03_S07_an_attempt_that_may_be_run_again_is_accepted_once_its_lease_is_over) {
  Reserve rerun = a_reserve(1);
  rerun.lease_policy = LeasePolicy::rerun;
  const Execute first = run(rerun);
  const auto met = ask(an_accept(1));
  ASSERT_TRUE(is<InProgress>(met));
  EXPECT_FALSE(std::get<InProgress>(met).is_stored) << "it is nobody's once that attempt is over";
  clock.advance(lease);
  EXPECT_TRUE(is<Pending>(ask(an_accept(1, "as stored"))));
  const Execute again = claim();
  EXPECT_GT(again.attempt.fence, first.attempt.fence);
  const auto now = ask(a_reserve(1, 9));
  ASSERT_TRUE(is<InProgress>(now));
  EXPECT_TRUE(std::get<InProgress>(now).is_stored);
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::stale);

  Reserve resumed = a_reserve(2);
  resumed.lease_policy = LeasePolicy::resume;
  run(resumed);
  clock.advance(lease);
  EXPECT_TRUE(is<InProgress>(ask(an_accept(2)))) << "only a reserve takes it up";
}

TEST_P(StoreConformance, S19_the_reference_of_an_earlier_attempt_ends_with_it) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  ASSERT_FALSE(find(1)->upstream_reference.empty());
  ask(a_release(first));
  const Execute second = run(1, 2);
  EXPECT_EQ(find(1)->upstream_reference, "");
  MarkUnknown lost = a_mark_unknown(second);
  lost.upstream_reference.clear();
  ask(lost);
  EXPECT_EQ(find(1)->upstream_reference, "") << "a question by it would find the first";
}

TEST_P(StoreConformance, S03_failed_retryable_is_accepted_anew) {
  const Execute first = run(1);
  ask(Advance{key(1), first.attempt, "phase-1"});
  ask(a_release(first));
  EXPECT_TRUE(is<Pending>(ask(an_accept(1))));
  const auto claimed = ask(Claim{token(50), "dispatcher", lease, true});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->recovery_point, "phase-1");
  EXPECT_GT(claimed->attempt.fence, first.attempt.fence);
}

TEST_P(StoreConformance, S03_the_dispatcher_claims_what_has_been_due_the_longest) {
  ask(an_accept(2, "second"));
  clock.advance(1s);
  ask(an_accept(1, "first by name"));
  const auto claimed = ask(Claim{token(50), "dispatcher", lease, false});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->id, key(2));
  EXPECT_EQ(claimed->request, "second");
  EXPECT_EQ(claimed->scope, "tenant-1");
  EXPECT_EQ(claimed->operation, "pay");
  const auto record = find(2);
  EXPECT_EQ(record->state, State::in_progress);
  EXPECT_EQ(record->owner, "dispatcher");
  EXPECT_FALSE(record->dispatched);
  EXPECT_EQ(record->locked_until, clock.now() + lease);
  EXPECT_EQ(claim(51).id, key(1));
  EXPECT_FALSE(ask(Claim{token(52), "dispatcher", lease, false}));
}

TEST_P(StoreConformance, S03_pending_past_its_expiry_ends_as_a_stored_408) {
  ask(an_accept(1));
  ask(an_accept(2));
  clock.advance(retention - 1ms);
  EXPECT_TRUE(sweep().empty());
  clock.advance(1ms);
  EXPECT_FALSE(ask(Claim{token(50), "dispatcher", lease, true})) << "too late to be run";
  const auto outcome = ask(a_reserve(2, 2));  // The reserve that meets it does the same.
  const auto steps = sweep();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0], (LifecycleStep{key(1), State::pending, State::completed}));
  const auto record = find(1);
  ASSERT_TRUE(record && record->response);
  EXPECT_EQ(record->response->status, 408);
  EXPECT_NE(record->response->body.find("request_timeout"), std::string::npos);
  EXPECT_FALSE(record->stored_request);
  EXPECT_EQ(record->expires_at, clock.now() + retention);
  ASSERT_TRUE(is<Replay>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<Replay>(outcome).response.status, 408);
  EXPECT_EQ(state(2), State::completed);
}

TEST_P(StoreConformance, S03_complete_stores_the_answer) {
  const Execute first = run(1);
  clock.advance(3s);
  const OwnerReply reply = ask(a_complete(first));
  EXPECT_EQ(reply, (OwnerReply{Verdict::done, State::completed, clock.now() + retention}));
  const auto record = find(1);
  EXPECT_EQ(record->response, answer());
  EXPECT_EQ(record->completed_at, clock.now());
  EXPECT_EQ(record->tombstone_until, clock.now() + retention + tombstone);
  EXPECT_EQ(record->upstream_reference, "ref-1");
  EXPECT_EQ(record->attempt, first.attempt);
}

TEST_P(StoreConformance, S03_complete_of_a_lease_that_ran_out_unnoticed_is_done) {
  const Execute first = run(1);
  clock.advance(lease + 1h);
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::done);
}

TEST_P(StoreConformance, S03_release_makes_it_retryable_and_keeps_the_reason) {
  for (const ReleaseBasis basis : {ReleaseBasis::proven, ReleaseBasis::declared}) {
    const int number = static_cast<int>(basis);
    const Execute first = run(number);
    EXPECT_EQ(ask(a_release(first, basis)),
              (OwnerReply{Verdict::done, State::failed_retryable, clock.now() + retention}));
    const auto record = find(number);
    EXPECT_EQ(record->release_basis, basis);
    EXPECT_EQ(record->last_error_code, "connect_refused");
  }
}

TEST_P(StoreConformance, S03_release_of_a_stored_request_waits_and_is_tried_again) {
  ask(an_accept(1));
  const StoreTime accepted = clock.now();
  const Execute first = claim();
  EXPECT_EQ(ask(a_release(first)),
            (OwnerReply{Verdict::done, State::pending, accepted + retention}));
  EXPECT_FALSE(ask(Claim{token(51), "dispatcher", lease, true}));
  clock.advance(5s);
  const Execute second = claim(51);
  EXPECT_GT(second.attempt.fence, first.attempt.fence);
  clock.advance(retention);
  EXPECT_EQ(ask(a_release(second)).state, State::completed) << "until expires_at";
  EXPECT_EQ(find(1)->response->status, 408);
}

TEST_P(StoreConformance, S03_mark_unknown) {
  const Execute first = run(1);
  clock.advance(1s);
  EXPECT_EQ(ask(a_mark_unknown(first)), (OwnerReply{Verdict::done, State::unknown, std::nullopt}));
  const auto record = find(1);
  EXPECT_EQ(record->changed_at, clock.now());
  EXPECT_EQ(record->reconcile_after, clock.now() + 30s);
  EXPECT_EQ(record->upstream_reference, "ref-2");
  EXPECT_EQ(record->last_error_code, "upstream_timeout");
}

TEST_P(StoreConformance, S03_renew_advance_and_dispatched_need_a_lease_that_holds) {
  const Execute first = run(not_dispatched(1));
  clock.advance(lease - 1ms);
  EXPECT_EQ(ask(Renew{key(1), first.attempt, lease}).verdict, Verdict::done);
  EXPECT_EQ(find(1)->locked_until, clock.now() + lease);
  EXPECT_EQ(ask(Renew{key(1), first.attempt, 1s}).verdict, Verdict::done);
  EXPECT_EQ(find(1)->locked_until, clock.now() + lease) << "never shortened";
  EXPECT_EQ(ask(Advance{key(1), first.attempt, "charged"}).verdict, Verdict::done);
  EXPECT_EQ(find(1)->recovery_point, "charged");
  EXPECT_EQ(ask(Dispatched{key(1), first.attempt}).verdict, Verdict::done);
  EXPECT_EQ(ask(Dispatched{key(1), first.attempt}).verdict, Verdict::done);
  EXPECT_TRUE(find(1)->dispatched);
  clock.advance(lease);
  const std::string before = snapshot(1);
  EXPECT_EQ(ask(Renew{key(1), first.attempt, lease}).verdict, Verdict::stale);
  EXPECT_EQ(ask(Advance{key(1), first.attempt, "late"}).verdict, Verdict::stale);
  EXPECT_EQ(ask(Dispatched{key(1), first.attempt}).verdict, Verdict::stale);
  EXPECT_EQ(snapshot(1), before);
}

TEST_P(StoreConformance, S03_sweep_proves_an_undispatched_attempt_not_executed) {
  run(not_dispatched(1));
  ask(an_accept(2));
  ASSERT_TRUE(ask(Claim{token(50), "dispatcher", lease, false}));
  clock.advance(lease - 1ms);
  EXPECT_TRUE(sweep().empty());
  clock.advance(1ms);
  EXPECT_EQ(sweep().size(), 2u);
  EXPECT_EQ(state(1), State::failed_retryable);
  EXPECT_EQ(find(1)->release_basis, ReleaseBasis::proven);
  EXPECT_EQ(find(1)->expires_at, clock.now() + retention);
  EXPECT_EQ(state(2), State::pending);
  EXPECT_EQ(find(2)->stored_request, "POST / please");
}

TEST_P(StoreConformance, S03_a_reserve_sweeps_an_undispatched_attempt_and_runs) {
  const Execute first = run(not_dispatched(1));
  ask(Advance{key(1), first.attempt, "phase-1"});
  clock.advance(lease);
  const Execute second = run(1, 2);
  EXPECT_GT(second.attempt.fence, first.attempt.fence);
  EXPECT_EQ(second.recovery_point, "phase-1");
  EXPECT_FALSE(find(1)->expires_at);
  ask(an_accept(2));
  ASSERT_TRUE(ask(Claim{token(50), "dispatcher", lease, false}));
  clock.advance(lease);
  EXPECT_TRUE(is<Pending>(ask(a_reserve(2, 2)))) << "its stored request is what will run";
  EXPECT_EQ(state(2), State::pending);
}

TEST_P(StoreConformance, S03_an_accept_sweeps_an_undispatched_attempt_and_stores) {
  run(not_dispatched(1));
  clock.advance(lease);
  EXPECT_TRUE(is<Pending>(ask(an_accept(1))));
  EXPECT_EQ(state(1), State::pending);
}

TEST_P(StoreConformance, S03_a_dispatched_attempt_whose_lease_ran_out_is_unknown) {
  run(1);
  run(2);
  clock.advance(lease);
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Unknown>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<Unknown>(outcome).since, clock.now());
  EXPECT_EQ(std::get<Unknown>(outcome).reconcile_in, std::nullopt);
  EXPECT_EQ(state(1), State::unknown);
  ASSERT_EQ(sweep().size(), 1u);
  EXPECT_EQ(state(2), State::unknown);
}

TEST_P(StoreConformance, S03_resume_and_rerun_grant_a_new_attempt_from_the_recovery_point) {
  for (const LeasePolicy policy : {LeasePolicy::resume, LeasePolicy::rerun}) {
    const int number = static_cast<int>(policy);
    const Execute first = run(with_policy(number, policy));
    ask(Advance{key(number), first.attempt, "phase-2"});
    clock.advance(lease);
    EXPECT_TRUE(sweep().empty()) << "left to the reserve or the completer";
    const Execute second = run(with_policy(number, policy, 2));
    EXPECT_GT(second.attempt.fence, first.attempt.fence);
    EXPECT_EQ(second.recovery_point, "phase-2");
    EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::stale);
    EXPECT_EQ(ask(a_complete(second)).verdict, Verdict::done);
  }
}

TEST_P(StoreConformance, S03_failed_retryable_runs_again) {
  const Execute first = run(1);
  ask(Advance{key(1), first.attempt, "phase-1"});
  const StoreTime created = clock.now();
  clock.advance(2s);
  ask(a_release(first));
  const Execute second = run(1, 2);
  EXPECT_GT(second.attempt.fence, first.attempt.fence);
  EXPECT_EQ(second.recovery_point, "phase-1");
  const auto record = find(1);
  EXPECT_EQ(record->created_at, created);
  EXPECT_FALSE(record->release_basis);
  EXPECT_EQ(record->last_error_code, "");
}

TEST_P(StoreConformance, S03_failed_retryable_past_its_expiry_is_gone) {
  const Execute first = run(1);
  ask(a_release(first));
  clock.advance(retention);
  EXPECT_FALSE(find(1));
  EXPECT_EQ(ask(a_complete(first)), (OwnerReply{Verdict::stale, std::nullopt, std::nullopt}));
  Reserve other = a_reserve(1, 2);
  other.fingerprints = {body(2)};
  const Execute second = run(other);
  EXPECT_EQ(second.recovery_point, "");
  EXPECT_EQ(find(1)->created_at, clock.now());
}

TEST_P(StoreConformance, S03_unknown_is_released_by_the_attempt_it_came_from) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  EXPECT_EQ(ask(a_release(first)).state, State::failed_retryable);
  ask(an_accept(2));
  const Execute second = claim();
  clock.advance(lease);
  sweep();
  ASSERT_EQ(state(2), State::unknown);
  EXPECT_EQ(ask(a_release(second)).state, State::pending);
}

TEST_P(StoreConformance, S03_a_late_answer_of_the_attempt_itself_completes) {
  const Execute failed = run(1);
  ask(a_release(failed));
  EXPECT_EQ(ask(a_complete(failed)).verdict, Verdict::done);
  EXPECT_EQ(find(1)->response, answer());
  EXPECT_FALSE(find(1)->release_basis);

  ask(an_accept(2));
  const Execute pending = claim();
  ask(a_release(pending));
  ASSERT_EQ(state(2), State::pending);
  EXPECT_EQ(ask(a_complete(pending)).verdict, Verdict::done);
  EXPECT_FALSE(find(2)->stored_request);

  const Execute unknown = run(3);
  clock.advance(lease);
  sweep();
  ASSERT_EQ(state(3), State::unknown);
  EXPECT_EQ(ask(a_complete(unknown)).verdict, Verdict::done);
  EXPECT_FALSE(find(3)->reconcile_after);
}

TEST_P(StoreConformance, S03_a_verb_on_no_record_is_stale) {
  const Execute nothing{key(1), {1, token(1)}, ""};
  const OwnerReply stale{Verdict::stale, std::nullopt, std::nullopt};
  EXPECT_EQ(ask(a_complete(nothing)), stale);
  EXPECT_EQ(ask(a_release(nothing)), stale);
  EXPECT_EQ(ask(a_mark_unknown(nothing)), stale);
  EXPECT_EQ(ask(Renew{key(1), nothing.attempt, lease}), stale);
  EXPECT_EQ(ask(Advance{key(1), nothing.attempt, "x"}), stale);
  EXPECT_EQ(ask(Dispatched{key(1), nothing.attempt}), stale);
  EXPECT_FALSE(find(1));
}

TEST_P(StoreConformance, S03_every_later_verb_of_a_completed_attempt_gets_settled) {
  const Execute first = run(1);
  ask(a_complete(first));
  const std::string before = snapshot(1);
  const OwnerReply settled{Verdict::settled, State::completed, clock.now() + retention};
  EXPECT_EQ(ask(a_complete(first)), settled);
  EXPECT_EQ(ask(a_release(first)), settled);
  EXPECT_EQ(ask(a_mark_unknown(first)), settled);
  EXPECT_EQ(ask(Renew{key(1), first.attempt, lease}), settled);
  EXPECT_EQ(ask(Advance{key(1), first.attempt, "x"}), settled);
  EXPECT_EQ(ask(Dispatched{key(1), first.attempt}), settled);
  EXPECT_EQ(snapshot(1), before);
}

}  // namespace
}  // namespace idem::test
