#include "store_conformance/harness.hpp"

/// protocol.md §3 and §19: what evidence may do, and that it is kept whatever it does.
namespace idem::test {
namespace {

using As = Resolve::As;
using ResolveVerdict = Resolve::Verdict;

TEST_P(StoreConformance, S03_unknown_is_resolved_as_completed) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  clock.advance(1h);
  EXPECT_EQ(ask(a_resolve(1, As::completed, first.attempt.fence)),
            (Resolve::Reply{ResolveVerdict::done, State::completed}));
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Replay>(outcome));
  EXPECT_EQ(std::get<Replay>(outcome).response, answer(201, "found at the provider"));
  EXPECT_EQ(std::get<Replay>(outcome).expires_at, clock.now() + retention);
}

TEST_P(StoreConformance, S03_unknown_is_resolved_as_failed) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  clock.advance(lease + 1ms);
  EXPECT_EQ(ask(a_resolve(1, As::failed_retryable, first.attempt.fence, clock.now())),
            (Resolve::Reply{ResolveVerdict::done, State::failed_retryable}));
  run(1, 2);
  ask(an_accept(2));
  const Execute second = claim();
  ask(a_mark_unknown(second));
  clock.advance(lease + 1ms);
  EXPECT_EQ(ask(a_resolve(2, As::failed_retryable, second.attempt.fence, clock.now())).state,
            State::pending);
  claim(51);
}

TEST_P(StoreConformance, S19_negative_evidence_counts_only_from_after_the_attempt) {
  const Execute first = run(1);
  const StoreTime end = clock.now() + lease;
  ask(a_mark_unknown(first));
  const auto nothing_there = [&](StoreTime observed_at, Millis grace) {
    Resolve verb = a_resolve(1, As::failed_retryable, first.attempt.fence);
    verb.observed_at = observed_at;
    verb.grace = grace;
    return ask(verb);
  };
  const Resolve::Reply refused{ResolveVerdict::too_early, State::unknown};
  EXPECT_EQ(nothing_there(clock.now(), 0ms), refused);
  EXPECT_EQ(nothing_there(end + 1h, 0ms), refused) << "nobody has seen the future";
  clock.advance(1h);
  EXPECT_EQ(nothing_there(end - 1ms, 0ms), refused) << "the attempt could still send";
  EXPECT_EQ(nothing_there(end, 0ms), refused);
  EXPECT_EQ(nothing_there(end + 5s, 5s), refused) << "it may not have shown yet";
  EXPECT_EQ(nothing_there(clock.now() + 1ms, 5s), refused) << "nobody has seen the future";
  EXPECT_EQ(state(1), State::unknown);
  EXPECT_EQ(nothing_there(end + 5s + 1ms, 5s),
            (Resolve::Reply{ResolveVerdict::done, State::failed_retryable}));
  EXPECT_EQ(ask(ReadEvidence{key(1)}).size(), 7u) << "the refused ones are kept, too";
}

TEST_P(StoreConformance, S19_positive_evidence_counts_whenever_it_was_observed) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  Resolve verb = a_resolve(1, As::completed, first.attempt.fence);
  verb.observed_at = clock.now();
  verb.grace = 1h;
  EXPECT_EQ(ask(verb), (Resolve::Reply{ResolveVerdict::done, State::completed}));
}

TEST_P(StoreConformance, S03_positive_evidence_ends_a_record_that_waits_for_a_retry) {
  const Execute first = run(1);
  ask(a_release(first));
  EXPECT_EQ(ask(a_resolve(1, As::completed, first.attempt.fence)).verdict, ResolveVerdict::done);
  ask(an_accept(2));
  const Execute second = claim();
  ask(a_release(second));
  EXPECT_EQ(ask(a_resolve(2, As::completed, second.attempt.fence)).verdict, ResolveVerdict::done);
  EXPECT_EQ(state(2), State::completed);
  EXPECT_FALSE(find(2)->stored_request);
}

TEST_P(StoreConformance, S19_resolve_is_refused_unless_unknown_and_the_fence_is_current) {
  const auto refused = [&](int number, As as, std::optional<Fence> fence, ResolveVerdict verdict) {
    const std::string before = snapshot(number);
    EXPECT_EQ(ask(a_resolve(number, as, fence, clock.now())).verdict, verdict) << before;
    EXPECT_EQ(snapshot(number), before);
  };
  refused(9, As::completed, 1, ResolveVerdict::not_found);
  const Execute first = run(1);
  const Fence fence = first.attempt.fence;
  EXPECT_EQ(ask(a_resolve(3, As::completed, run(3).attempt.fence, clock.now())).verdict,
            ResolveVerdict::wrong_state);
  EXPECT_EQ(state(3), State::in_progress);
  ask(a_release(first));
  refused(1, As::failed_retryable, fence, ResolveVerdict::wrong_state);
  refused(1, As::completed, fence + 1, ResolveVerdict::wrong_fence);
  const Execute second = run(1, 2);
  refused(1, As::completed, fence, ResolveVerdict::wrong_state);
  ask(a_mark_unknown(second));
  refused(1, As::completed, fence, ResolveVerdict::wrong_fence);
  refused(1, As::failed_retryable, fence, ResolveVerdict::wrong_fence);
  ask(a_complete(second));
  refused(1, As::failed_retryable, second.attempt.fence, ResolveVerdict::wrong_state);
  refused(1, As::completed, second.attempt.fence, ResolveVerdict::wrong_state);
  clock.advance(retention);
  refused(1, As::completed, second.attempt.fence, ResolveVerdict::wrong_state);
  ask(an_accept(2));
  refused(2, As::completed, std::nullopt, ResolveVerdict::wrong_fence);
}

TEST_P(StoreConformance, S19_resolve_as_completed_needs_the_answer) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  Resolve verb = a_resolve(1, As::completed, first.attempt.fence);
  verb.response.reset();
  EXPECT_EQ(ask(verb), (Resolve::Reply{ResolveVerdict::missing_response, State::unknown}));
}

TEST_P(StoreConformance, S19_every_decision_is_appended_to_the_log) {
  const Execute first = run(1);
  Resolve verb = a_resolve(1, As::completed, first.attempt.fence);
  verb.observed_at = clock.now() - 5s;
  ask(verb);
  clock.advance(1s);
  ask(a_mark_unknown(first));
  ask(verb);
  ask(a_resolve(1, As::failed_retryable, first.attempt.fence));
  ask(a_resolve(9, As::completed, 5));
  reopen();
  const auto entries = ask(ReadEvidence{key(1)});
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].before, State::in_progress);
  EXPECT_EQ(entries[0].after, State::in_progress);
  EXPECT_FALSE(entries[0].applied);
  EXPECT_EQ(entries[0].observed_at, verb.observed_at);
  EXPECT_EQ(entries[0].source, "provider");
  EXPECT_EQ(entries[0].evidence, "payment 17 exists");
  EXPECT_EQ(entries[0].reason, "looked up");
  EXPECT_EQ(entries[1].before, State::unknown);
  EXPECT_EQ(entries[1].after, State::completed);
  EXPECT_TRUE(entries[1].applied);
  EXPECT_EQ(entries[1].recorded_at, clock.now());
  EXPECT_FALSE(entries[2].applied) << "evidence that contradicts a completed record is kept";
  const auto about_nothing = ask(ReadEvidence{key(9)});
  ASSERT_EQ(about_nothing.size(), 1u);
  EXPECT_EQ(about_nothing[0].before, State{});
  EXPECT_FALSE(about_nothing[0].applied);
}

TEST_P(StoreConformance, S19_of_several_readers_of_one_plan_one_asks) {
  const Execute attempt = run(1);
  ask(a_mark_unknown(attempt));
  ASSERT_EQ(find(1)->reconcile_attempts, 0u);
  const Reschedule plan{
      .id = key(1), .fence = attempt.attempt.fence, .attempts = 0, .reconcile_in = 7s};
  EXPECT_EQ(ask(plan), (Resolve::Reply{ResolveVerdict::done, State::unknown}));
  EXPECT_EQ(ask(plan), (Resolve::Reply{ResolveVerdict::superseded, State::unknown}));
  auto record = find(1);
  EXPECT_EQ(record->reconcile_attempts, 1u);
  EXPECT_EQ(record->reconcile_after, clock.now() + 7s);
  EXPECT_TRUE(ask(ReadEvidence{key(1)}).empty()) << "nothing was found out";
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Unknown>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<Unknown>(outcome).reconcile_in, 7s);
  reopen();
  EXPECT_EQ(find(1)->reconcile_attempts, 1u);
}

TEST_P(StoreConformance, S19_the_result_of_a_turn_is_noted_and_the_last_one_leaves_it_to_people) {
  const Execute attempt = run(1);
  ask(a_mark_unknown(attempt));
  Reschedule turn{.id = key(1),
                  .fence = attempt.attempt.fence,
                  .attempts = 0,
                  .reconcile_in = {},
                  .source = "poll",
                  .evidence = "status 503",
                  .reason = "ask later",
                  .observed_at = clock.now()};
  EXPECT_EQ(ask(turn).verdict, ResolveVerdict::done);
  const auto record = find(1);
  EXPECT_FALSE(record->reconcile_after);
  EXPECT_EQ(record->reconcile_attempts, 1u);
  EXPECT_EQ(record->state, State::unknown);
  const auto outcome = ask(a_reserve(1, 2));
  EXPECT_FALSE(std::get<Unknown>(outcome).reconcile_in);
  const auto entries = ask(ReadEvidence{key(1)});
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].evidence, "status 503");
  EXPECT_EQ(entries[0].source, "poll");
  EXPECT_FALSE(entries[0].applied);
  EXPECT_EQ(entries[0].before, State::unknown);
  EXPECT_EQ(entries[0].after, State::unknown);
}

TEST_P(StoreConformance, S19_only_an_unknown_record_of_that_attempt_is_planned) {
  const Execute attempt = run(1);
  Reschedule plan{.id = key(1), .fence = attempt.attempt.fence, .attempts = 0, .reconcile_in = 7s};
  EXPECT_EQ(ask(plan), (Resolve::Reply{ResolveVerdict::wrong_state, State::in_progress}));
  EXPECT_EQ(ask(Reschedule{.id = key(2), .fence = 1, .reconcile_in = 7s}).verdict,
            ResolveVerdict::not_found);
  ask(a_mark_unknown(attempt));
  const std::string before = snapshot(1);
  plan.fence = attempt.attempt.fence + 1;
  EXPECT_EQ(ask(plan), (Resolve::Reply{ResolveVerdict::wrong_fence, State::unknown}));
  plan.fence.reset();
  EXPECT_EQ(ask(plan).verdict, ResolveVerdict::wrong_fence);
  EXPECT_EQ(snapshot(1), before);
  plan.reconcile_in = -1ms;
  const auto refused = ask_and_wait(store(), plan);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::refused);
}

TEST_P(StoreConformance, S03_cache_bust_frees_a_stored_5xx) {
  const Execute first = run(1);
  ask(a_complete(first, answer(503, "sorry")));
  EXPECT_EQ(ask(CacheBust{key(1), first.attempt.fence, "deployed the fix"}),
            (Resolve::Reply{ResolveVerdict::done, State::failed_retryable}));
  const auto entries = ask(ReadEvidence{key(1)});
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].reason, "deployed the fix");
  EXPECT_TRUE(entries[0].applied);
  const auto record = find(1);
  EXPECT_FALSE(record->response);
  EXPECT_FALSE(record->completed_at);
  EXPECT_EQ(record->expires_at, clock.now() + retention);
  EXPECT_EQ(ask(a_complete(first, answer(503, "sorry"))).verdict, Verdict::stale)
      << "a repeat of the old complete must not bring the answer back";
  const Execute second = run(1, 2);
  EXPECT_EQ(ask(a_complete(second)).verdict, Verdict::done);
}

TEST_P(StoreConformance, S19_a_cache_bust_frees_the_attempt_that_it_names_and_no_other) {
  const Execute first = run(1);
  ask(a_complete(first, answer(500, "sorry")));
  const CacheBust bust{key(1), first.attempt.fence, "provider shows nothing of it"};
  EXPECT_EQ(ask(bust).verdict, ResolveVerdict::done);
  EXPECT_EQ(ask(bust).verdict, ResolveVerdict::wrong_state) << "the reply was lost";
  const Execute second = run(1, 2);
  ask(a_complete(second, answer(500, "again")));
  const std::string before = snapshot(1);
  EXPECT_EQ(ask(bust), (Resolve::Reply{ResolveVerdict::wrong_fence, State::completed}));
  EXPECT_EQ(ask(CacheBust{key(1), std::nullopt, "any"}).verdict, ResolveVerdict::wrong_fence);
  EXPECT_EQ(snapshot(1), before);
}

TEST_P(StoreConformance, S19_a_cache_bust_does_not_undo_evidence) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  Resolve found = a_resolve(1, As::completed, first.attempt.fence);
  found.response = answer(500, "it ran");
  ASSERT_EQ(ask(found).verdict, ResolveVerdict::done);
  reopen();
  EXPECT_EQ(ask(CacheBust{key(1), first.attempt.fence, "clean up"}),
            (Resolve::Reply{ResolveVerdict::by_evidence, State::completed}));
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
  const Execute second = run(2);
  ask(a_complete(second, answer(500, "sorry")));
  found.id = key(2);
  found.fence = second.attempt.fence;
  ASSERT_EQ(ask(found).verdict, ResolveVerdict::wrong_state);
  EXPECT_EQ(ask(CacheBust{key(2), second.attempt.fence, "fixed"}).verdict,
            ResolveVerdict::by_evidence)
      << "evidence that was refused settles nothing, and says that a second run is a second effect";
}

TEST_P(StoreConformance,
       S19_T63_an_attempt_reported_as_executed_is_not_released_and_no_absence_frees_it) {
  const Execute first = run(1);
  const Fence fence = first.attempt.fence;
  EXPECT_EQ(ask(a_resolve(1, As::completed, fence, clock.now())).verdict,
            ResolveVerdict::wrong_state);
  EXPECT_EQ(state(1), State::in_progress);
  ask(a_release(first));
  ASSERT_EQ(state(1), State::unknown) << "its owner says no, the evidence says yes";
  EXPECT_TRUE(find(1)->reconcile_after);
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(1, 2))));

  clock.advance(lease + 1h);
  EXPECT_EQ(ask(a_resolve(1, As::failed_retryable, fence, clock.now())).verdict,
            ResolveVerdict::by_evidence);
  EXPECT_EQ(state(1), State::unknown);
  EXPECT_EQ(ask(a_resolve(1, As::completed, fence, clock.now())).verdict, ResolveVerdict::done);
  EXPECT_EQ(state(1), State::completed);
}

TEST_P(StoreConformance, S19_an_executed_attempt_without_an_answer_is_not_freed_by_an_absence) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  Resolve without = a_resolve(1, As::completed, first.attempt.fence, clock.now());
  without.response.reset();
  EXPECT_EQ(ask(without).verdict, ResolveVerdict::missing_response);
  clock.advance(lease + 1h);
  EXPECT_EQ(ask(a_resolve(1, As::failed_retryable, first.attempt.fence, clock.now())).verdict,
            ResolveVerdict::by_evidence);
  EXPECT_EQ(state(1), State::unknown);
}

TEST_P(StoreConformance, S19_evidence_without_an_attempt_contests_the_current_one) {
  const Execute lost = run(1);
  ask(a_mark_unknown(lost));
  EXPECT_EQ(ask(a_resolve(1, As::completed, std::nullopt, clock.now())).verdict,
            ResolveVerdict::wrong_fence);
  const Execute running = run(2);
  EXPECT_EQ(ask(a_resolve(2, As::completed, std::nullopt, clock.now())).verdict,
            ResolveVerdict::wrong_state);
  ask(a_release(running));
  EXPECT_EQ(state(2), State::unknown);
  clock.advance(lease + 1h);
  for (const auto& [number, attempt] :
       {std::pair(1, lost.attempt), std::pair(2, running.attempt)}) {
    EXPECT_EQ(ask(a_resolve(number, As::failed_retryable, attempt.fence, clock.now())).verdict,
              ResolveVerdict::by_evidence);
    EXPECT_EQ(ask(a_resolve(number, As::completed, attempt.fence, clock.now())).verdict,
              ResolveVerdict::done);
  }
  run(3);
  EXPECT_EQ(ask(a_resolve(3, As::failed_retryable, std::nullopt, clock.now())).verdict,
            ResolveVerdict::wrong_state)
      << "an absence contests nothing";
  ask(an_accept(4));
  EXPECT_EQ(ask(a_resolve(4, As::completed, std::nullopt, clock.now())).verdict,
            ResolveVerdict::wrong_fence);
  EXPECT_FALSE(find(4)->is_contested) << "nobody ever ran it";
}

TEST_P(StoreConformance, S19_evidence_with_a_fence_of_0_names_no_attempt) {
  const Execute running = run(1);
  EXPECT_EQ(ask(a_resolve(1, As::completed, 0, clock.now())).verdict, ResolveVerdict::wrong_state);
  EXPECT_TRUE(find(1)->is_contested);
  ask(a_release(running));
  EXPECT_EQ(state(1), State::unknown) << "nothing frees work that was reported as executed";
  clock.advance(lease + 1h);
  EXPECT_EQ(ask(a_resolve(1, As::failed_retryable, running.attempt.fence, clock.now())).verdict,
            ResolveVerdict::by_evidence);
  EXPECT_EQ(ask(Reschedule{.id = key(1), .fence = 0}).verdict, ResolveVerdict::wrong_fence);
  const auto log = ask(ReadEvidence{key(1)});
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log.front().fence, std::nullopt);
  ask(a_complete(run(2), answer(500, "failed")));
  EXPECT_EQ(ask(CacheBust{.id = key(2), .fence = 0, .reason = {}}).verdict,
            ResolveVerdict::wrong_fence);
}

TEST_P(StoreConformance, S19_a_refusal_does_not_complete_an_attempt_reported_as_executed) {
  const Execute first = run(1);
  ask(a_mark_unknown(first));
  Resolve refused = a_resolve(1, As::completed, first.attempt.fence, clock.now());
  refused.denies = true;
  Resolve without = refused;
  without.response.reset();
  without.denies = false;
  EXPECT_EQ(ask(without).verdict, ResolveVerdict::missing_response);
  EXPECT_EQ(ask(refused), (Resolve::Reply{ResolveVerdict::by_evidence, State::unknown}));
  refused.denies = false;
  EXPECT_EQ(ask(refused).verdict, ResolveVerdict::done);

  const Execute second = run(2);
  ask(a_mark_unknown(second));
  refused = a_resolve(2, As::completed, second.attempt.fence, clock.now());
  refused.denies = true;
  EXPECT_EQ(ask(refused).verdict, ResolveVerdict::done) << "nobody has said otherwise";
}

TEST_P(StoreConformance, S19_evidence_without_an_answer_holds_a_record_that_would_run_again) {
  const auto hold = [&](int number, std::optional<Fence> fence, ResolveVerdict expected) {
    Resolve without = a_resolve(number, As::completed, fence, clock.now());
    without.response.reset();
    without.denies = true;
    const auto before = state(number);
    EXPECT_EQ(ask(without), (Resolve::Reply{expected, before}));
    EXPECT_FALSE(find(number)->is_contested) << "what was refused may be tried again";
    without.denies = false;
    EXPECT_EQ(ask(without), (Resolve::Reply{expected, State::unknown}));
    EXPECT_TRUE(find(number)->is_contested);
    EXPECT_EQ(find(number)->reconcile_after, clock.now());
  };
  const Execute first = run(1);
  ask(a_release(first));
  hold(1, first.attempt.fence, ResolveVerdict::missing_response);
  ask(a_release(run(2)));
  hold(2, std::nullopt, ResolveVerdict::wrong_fence);
  ask(an_accept(3));
  ask(a_release(claim(3)));
  ASSERT_EQ(state(3), State::pending);
  hold(3, std::nullopt, ResolveVerdict::wrong_fence);
  EXPECT_FALSE(ask(Claim{token(4), "d", lease, true}));
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(1, 2))));
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(2, 2))));

  clock.advance(retention + 1h);
  for (int i = 0; i < 3; ++i) {
    ask(Sweep{100});
    ask(Reap{100});
  }
  reopen();
  for (const int number : {1, 2, 3}) {
    const auto fence = find(number)->fence();
    EXPECT_EQ(ask(a_resolve(number, As::failed_retryable, fence, clock.now())).verdict,
              ResolveVerdict::by_evidence);
    EXPECT_EQ(state(number), State::unknown);
    EXPECT_EQ(ask(a_resolve(number, As::completed, fence, clock.now())).verdict,
              ResolveVerdict::done);
  }
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
}

TEST_P(StoreConformance, S19_records_that_evidence_can_settle_are_listed_by_state) {
  Reserve resumed = a_reserve(1);
  resumed.lease_policy = LeasePolicy::resume;
  const Attempt first = std::get<Execute>(ask(resumed)).attempt;
  ask(Dispatched{key(1), first});
  ask(a_release(run(2)));
  ask(a_mark_unknown(run(3)));
  ask(an_accept(4));
  ask(a_complete(run(5)));
  const auto listed = [&](State state) {
    std::vector<RecordId> ids;
    for (const Record& record : ask(List{.state = state})) ids.push_back(record.id);
    return ids;
  };
  const auto only = [](int number) { return std::vector{key(number)}; };
  const auto expect_all = [&] {
    EXPECT_EQ(listed(State::in_progress), only(1));
    EXPECT_EQ(listed(State::failed_retryable), only(2));
    EXPECT_EQ(listed(State::unknown), only(3));
    EXPECT_EQ(listed(State::pending), only(4));
    EXPECT_EQ(listed(State::completed), only(5));
  };
  expect_all();
  const auto pending = ask(List{.state = State::pending});
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(pending.front().stored_request, "") << "there is one, and its bytes stay in the store";
  clock.advance(lease + 1s);
  for (int sweeps = 0; sweeps < 3; ++sweeps) ask(Sweep{100});
  expect_all();  // Of the first one a lease has ended, after which only a reserve resumes it.
  reopen();
  expect_all();
  run(2, 2);
  EXPECT_EQ(listed(State::failed_retryable), std::vector<RecordId>{});
  Reserve again = resumed;
  again.token = token(9);
  const auto taken_up = ask(again);
  ASSERT_TRUE(is<Execute>(taken_up));
  EXPECT_EQ(listed(State::in_progress).size(), 2u);
  ask(Complete{key(1), std::get<Execute>(taken_up).attempt, answer(), {}});
  EXPECT_EQ(listed(State::in_progress), only(2));
}

TEST_P(StoreConformance, S19_evidence_about_another_attempt_contests_none) {
  const Execute first = run(1);
  ask(a_release(first));
  const Execute second = run(1, 2);
  EXPECT_EQ(ask(a_resolve(1, As::completed, first.attempt.fence, clock.now())).verdict,
            ResolveVerdict::wrong_state);
  EXPECT_EQ(ask(a_resolve(1, As::failed_retryable, second.attempt.fence, clock.now())).verdict,
            ResolveVerdict::wrong_state);
  ask(a_release(second));
  EXPECT_EQ(state(1), State::failed_retryable);

  const Execute third = run(1, 3);
  ask(a_resolve(1, As::completed, third.attempt.fence, clock.now()));
  ask(a_release(third));
  ASSERT_EQ(state(1), State::unknown);
  reopen();
  EXPECT_EQ(state(1), State::unknown);
}

TEST_P(StoreConformance, S03_cache_bust_is_refused_for_anything_else) {
  const auto refused = [&](int number, Fence fence, ResolveVerdict verdict) {
    const std::string before = snapshot(number);
    EXPECT_EQ(ask(CacheBust{key(number), fence, "please"}).verdict, verdict) << before;
    EXPECT_EQ(snapshot(number), before);
  };
  refused(1, 1, ResolveVerdict::not_found);
  const Execute first = run(1);
  const Fence fence = first.attempt.fence;
  refused(1, fence, ResolveVerdict::wrong_state);
  ask(a_mark_unknown(first));
  refused(1, fence, ResolveVerdict::wrong_state);
  ask(a_complete(first, answer(404, "no such account")));
  refused(1, fence, ResolveVerdict::wrong_state);
  const Execute second = run(2);
  ask(a_complete(second, answer(500, "late")));
  clock.advance(retention);
  refused(2, second.attempt.fence, ResolveVerdict::wrong_state);
  EXPECT_EQ(ask(ReadEvidence{key(1)}).size(), 4u) << "the refused ones, too";
}

}  // namespace
}  // namespace idem::test
