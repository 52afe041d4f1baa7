#include "store_conformance/harness.hpp"

/// protocol.md §5: what a reserve is answered with; §2: under which names it looks; §4: in doubt.
namespace idem::test {
namespace {

TEST_P(StoreConformance, S05_reserve_of_no_record_executes) {
  const Execute run_1 = run(1);
  EXPECT_EQ(run_1.id, key(1));
  EXPECT_EQ(run_1.attempt.token, token(1));
  EXPECT_GT(run_1.attempt.fence, 0u);
  const auto record = find(1);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, State::in_progress);
  EXPECT_EQ(record->scope, "tenant-1");
  EXPECT_EQ(record->operation, "pay");
  EXPECT_EQ(record->owner, "node-1");
  EXPECT_EQ(record->locked_until, clock.now() + lease);
  EXPECT_EQ(record->created_at, clock.now());
  EXPECT_FALSE(record->expires_at);
}

TEST_P(StoreConformance, S05_reserve_of_a_running_record_gets_the_remaining_lease) {
  run(1);
  clock.advance(20s);
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<InProgress>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<InProgress>(outcome).lease_remaining, 40s);
}

TEST_P(StoreConformance, S05_reserve_of_a_completed_record_replays) {
  const Execute first = run(1);
  clock.advance(1s);
  const StoreTime done = clock.now();
  ask(a_complete(first));
  clock.advance(1h);
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Replay>(outcome)) << describe(outcome);
  const auto& replay = std::get<Replay>(outcome);
  EXPECT_EQ(replay.response, answer());
  EXPECT_EQ(replay.completed_at, done);
  EXPECT_EQ(replay.expires_at, done + retention);
}

TEST_P(StoreConformance, S05_misuse_is_decided_first_in_every_state) {
  Reserve other = a_reserve(1, 9);
  other.fingerprints = {body(2)};
  const auto expect_misuse = [&](State state) {
    const std::string before = snapshot(1);
    const auto outcome = ask(other);
    ASSERT_TRUE(is<KeyMisuse>(outcome)) << describe(outcome);
    EXPECT_EQ(std::get<KeyMisuse>(outcome).state, state);
    EXPECT_EQ(snapshot(1), before) << "a misuse leaves the record as it is";
  };
  Execute current = run(1);
  expect_misuse(State::in_progress);
  ask(a_release(current));
  expect_misuse(State::failed_retryable);
  ask(an_accept(1));
  expect_misuse(State::pending);
  current = claim();
  ask(a_mark_unknown(current));
  expect_misuse(State::unknown);
  ask(a_complete(current));
  expect_misuse(State::completed);
  clock.advance(retention);
  expect_misuse(State::expired);
  EXPECT_EQ(reap().size(), 1u);
  expect_misuse(State::expired);
}

TEST_P(StoreConformance, S05_misuse_is_refused_and_an_expired_lease_left_to_the_right_asker) {
  run(1);
  clock.advance(lease);
  Reserve other = a_reserve(1, 2);
  other.fingerprints = {body(2)};
  EXPECT_TRUE(is<KeyMisuse>(ask(other)));
  EXPECT_EQ(state(1), State::in_progress);
}

// Behind the rule's 8 bytes: the kind of body that was read (0: none), and its values.
TEST_P(StoreConformance, S05_only_other_values_of_one_kind_of_body_prove_another_request) {
  const auto made = [](std::uint8_t rule, std::uint8_t kind, std::uint8_t values,
                       std::uint8_t rest) {
    Fingerprint fingerprint{1, {}};
    auto& digest = fingerprint.digest;
    std::fill_n(digest.begin(), 8, rule);
    digest[8] = kind;
    std::fill_n(digest.begin() + 9, 7, values);
    std::fill_n(digest.begin() + 16, 16, rest);
    return fingerprint;
  };
  int number = 1;
  const auto is_proven = [&](const Fingerprint& first, const Fingerprint& second) {
    Reserve one = a_reserve(++number);
    one.fingerprints = {first};
    run(one);
    Reserve other = a_reserve(number, 99);
    other.fingerprints = {second, made(7, 1, 7, 7)};
    const auto outcome = ask(other);
    EXPECT_TRUE(is<KeyMisuse>(outcome)) << describe(outcome);
    return is<KeyMisuse>(outcome) && std::get<KeyMisuse>(outcome).is_other;
  };
  EXPECT_TRUE(is_proven(made(0, 1, 1, 1), made(0, 1, 2, 2)));
  EXPECT_TRUE(is_proven(made(9, 2, 1, 1), made(9, 2, 2, 2)));
  EXPECT_TRUE(is_proven(made(0, 3, 1, 1), made(0, 3, 2, 1)));
  EXPECT_FALSE(is_proven(made(0, 1, 1, 1), made(0, 1, 1, 2))) << "the same values";
  EXPECT_FALSE(is_proven(made(0, 1, 1, 1), made(9, 1, 2, 2))) << "another rule";
  EXPECT_FALSE(is_proven(made(0, 1, 1, 1), made(0, 2, 2, 2))) << "another kind";
  EXPECT_FALSE(is_proven(made(0, 0, 0, 1), made(0, 0, 0, 2))) << "neither was read";
  EXPECT_FALSE(is_proven(made(0, 0, 0, 1), made(0, 1, 2, 2))) << "the first was not read";
  EXPECT_FALSE(is_proven(made(0, 1, 1, 1), made(0, 0, 0, 2))) << "the second was not read";
  EXPECT_FALSE(is_proven(made(0, 4, 1, 1), made(0, 4, 2, 2))) << "a kind that nobody knows";
  Fingerprint of_the_face = made(0, 1, 1, 1);
  of_the_face.version = 0;
  EXPECT_FALSE(is_proven(of_the_face, made(0, 1, 2, 2)));
  Fingerprint also_of_the_face = made(0, 1, 2, 2);
  also_of_the_face.version = 0;
  EXPECT_FALSE(is_proven(of_the_face, also_of_the_face));
}

TEST_P(StoreConformance, S05_any_of_the_offered_fingerprints_may_match) {
  run(1);
  Reserve verb = a_reserve(1, 2);
  Fingerprint newer = body(7);
  newer.version = 2;
  verb.fingerprints = {newer, body(1)};
  EXPECT_TRUE(is<InProgress>(ask(verb)));
  Fingerprint same_digest = body(1);
  same_digest.version = 2;
  verb.fingerprints = {same_digest};
  EXPECT_TRUE(is<KeyMisuse>(ask(verb))) << "the version is part of the fingerprint";
}

TEST_P(StoreConformance, S05_the_first_fingerprint_is_the_stored_one) {
  Reserve verb = a_reserve(1);
  verb.fingerprints = {body(3), body(4)};
  run(verb);
  Reserve second = a_reserve(1, 2);
  second.fingerprints = {body(4)};
  EXPECT_TRUE(is<KeyMisuse>(ask(second)));
  second.fingerprints = {body(3)};
  EXPECT_TRUE(is<InProgress>(ask(second)));
}

TEST_P(StoreConformance, S05_reserve_of_an_unknown_record_gets_its_start_and_the_next_question) {
  const Execute first = run(1);
  clock.advance(5s);
  ask(a_mark_unknown(first));
  const StoreTime since = clock.now();
  clock.advance(10s);
  auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Unknown>(outcome));
  EXPECT_EQ(std::get<Unknown>(outcome).since, since);
  EXPECT_EQ(std::get<Unknown>(outcome).reconcile_in, Millis(20s));
  clock.advance(1h);
  outcome = ask(a_reserve(1, 2));
  EXPECT_EQ(std::get<Unknown>(outcome).reconcile_in, Millis(0)) << "overdue, never negative";
}

TEST_P(StoreConformance, S05_reserve_past_expiry_gets_expired_whether_or_not_it_was_reaped) {
  const Execute first = run(1);
  const StoreTime done = clock.now();
  ask(a_complete(first));
  clock.advance(retention);
  for (int reaped = 0; reaped < 2; ++reaped) {
    const auto outcome = ask(a_reserve(1, 2));
    ASSERT_TRUE(is<Expired>(outcome)) << describe(outcome);
    EXPECT_EQ(std::get<Expired>(outcome).completed_at, done);
    reap();
  }
}

TEST_P(StoreConformance, S05_with_no_tombstone_a_key_runs_again_after_its_expiry) {
  Reserve verb = a_reserve(1);
  verb.tombstone = 0s;
  const Execute first = run(verb);
  ask(a_complete(first));
  clock.advance(retention - 1ms);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
  clock.advance(1ms);
  EXPECT_FALSE(find(1));
  const Execute second = run(1, 2);
  EXPECT_GT(second.attempt.fence, first.attempt.fence);
  EXPECT_EQ(find(1)->created_at, clock.now()) << "a new record, not the old one";
  EXPECT_FALSE(find(1)->response);
}

TEST_P(StoreConformance, S05_past_the_tombstone_a_key_is_new_also_for_another_request) {
  ask(a_complete(run(1)));
  clock.advance(retention + tombstone);
  Reserve other = a_reserve(1, 2);
  other.fingerprints = {body(2)};
  EXPECT_EQ(run(other).attempt.token, token(2));
  EXPECT_EQ(find(1)->upstream_reference, "");
}

TEST_P(StoreConformance, S05_reserve_of_pending_gets_pending) {
  EXPECT_TRUE(is<Pending>(ask(an_accept(1))));
  EXPECT_TRUE(is<Pending>(ask(a_reserve(1, 2))));
  EXPECT_TRUE(is<Pending>(ask(an_accept(1, "another copy"))));
  EXPECT_EQ(find(1)->stored_request, "POST / please") << "the first stored request stays";
}

TEST_P(StoreConformance, S05_accept_answers_from_the_record) {
  const Execute first = run(1);
  EXPECT_TRUE(is<InProgress>(ask(an_accept(1))));
  ask(a_mark_unknown(first));
  EXPECT_TRUE(is<Unknown>(ask(an_accept(1))));
  ask(a_complete(first));
  EXPECT_TRUE(is<Replay>(ask(an_accept(1))));
  clock.advance(retention);
  EXPECT_TRUE(is<Expired>(ask(an_accept(1))));
}

// ---- §4 ----

TEST_P(StoreConformance, S04_only_the_token_proves_that_the_reservation_is_yours) {
  const Execute first = run(1);
  clock.advance(1s);
  const auto again = ask(a_reserve(1, 1));
  ASSERT_TRUE(is<Execute>(again));
  EXPECT_EQ(std::get<Execute>(again).attempt, first.attempt);
  EXPECT_EQ(find(1)->locked_until, clock.now() - 1s + lease) << "a repeat extends nothing";
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
}

TEST_P(StoreConformance, S04_complete_may_be_repeated) {
  const Execute first = run(1);
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::done);
  const std::string before = snapshot(1);
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::settled);
  EXPECT_EQ(ask(a_complete(first, answer(500, "other"))).verdict, Verdict::settled);
  EXPECT_EQ(snapshot(1), before) << "the first ending stays";
}

TEST_P(StoreConformance, S04_release_and_mark_unknown_may_be_repeated) {
  const Execute first = run(1);
  EXPECT_EQ(ask(a_release(first)).verdict, Verdict::done);
  std::string before = snapshot(1);
  clock.advance(1s);
  EXPECT_EQ(ask(a_release(first)).verdict, Verdict::done);
  EXPECT_EQ(snapshot(1), before);
  const Execute second = run(2);
  EXPECT_EQ(ask(a_mark_unknown(second)).verdict, Verdict::done);
  before = snapshot(2);
  clock.advance(1s);
  EXPECT_EQ(ask(a_mark_unknown(second)).verdict, Verdict::done);
  EXPECT_EQ(snapshot(2), before);
}

TEST_P(StoreConformance, S04_an_owner_whose_reserve_reply_was_lost_settles_by_token_alone) {
  const Execute first = run(1);
  EXPECT_EQ(ask(by_token(Renew{key(1), first.attempt, lease})).verdict, Verdict::done);
  EXPECT_EQ(ask(by_token(a_complete(first))).verdict, Verdict::done);
  const Execute stranger{key(1), {{}, token(9)}, ""};
  EXPECT_EQ(ask(by_token(a_complete(stranger))).verdict, Verdict::stale);
}

TEST_P(StoreConformance, S04_a_fence_of_0_is_none_in_every_owners_verb) {
  const auto as_zero = [](auto verb, AttemptRef attempt) {
    attempt.fence = 0;
    verb.attempt = attempt;
    return verb;
  };
  int number = 0;
  const auto expect_done = [&](auto make) {
    const Execute first = run(++number);
    EXPECT_EQ(ask(as_zero(make(first), first.attempt)).verdict, Verdict::done) << number;
  };
  expect_done([](const Execute& first) { return a_complete(first); });
  expect_done([](const Execute& first) { return a_release(first); });
  expect_done([](const Execute& first) { return a_mark_unknown(first); });
  expect_done([](const Execute& first) { return Renew{first.id, first.attempt, lease}; });
  expect_done([](const Execute& first) { return Advance{first.id, first.attempt, "x"}; });
  expect_done([](const Execute& first) { return Dispatched{first.id, first.attempt}; });
  const Execute last = run(++number);
  const AttemptRef converted = Attempt{0, last.attempt.token};
  EXPECT_EQ(converted, (AttemptRef{std::nullopt, last.attempt.token}));
  EXPECT_EQ(ask(as_zero(a_complete(last), Attempt{0, token(2)})).verdict, Verdict::stale)
      << "the token decides";
  EXPECT_EQ(ask(a_complete({last.id, {0, last.attempt.token}, {}})).verdict, Verdict::done);
}

TEST_P(StoreConformance, S04_a_fence_without_its_token_or_a_token_without_its_fence_is_stale) {
  const Execute first = run(1);
  const std::string before = snapshot(1);
  const AttemptRef wrong[] = {{first.attempt.fence, token(2)},
                              {first.attempt.fence + 1, first.attempt.token},
                              {std::nullopt, token(2)},
                              {std::nullopt, {}}};
  for (const AttemptRef& attempt : wrong) {
    const auto as_other = [&](auto verb) {
      verb.attempt = attempt;
      return verb;
    };
    EXPECT_EQ(ask(as_other(a_complete(first))).verdict, Verdict::stale);
    EXPECT_EQ(ask(as_other(a_release(first))).verdict, Verdict::stale);
    EXPECT_EQ(ask(as_other(a_mark_unknown(first))).verdict, Verdict::stale);
    EXPECT_EQ(ask(Renew{key(1), attempt, lease}).verdict, Verdict::stale);
    EXPECT_EQ(ask(Advance{key(1), attempt, "x"}).verdict, Verdict::stale);
    EXPECT_EQ(ask(Dispatched{key(1), attempt}).verdict, Verdict::stale);
    EXPECT_EQ(snapshot(1), before);
  }
}

TEST_P(StoreConformance, S04_nobody_owns_a_pending_record_that_never_ran) {
  ask(an_accept(1));
  const Execute nobody{key(1), {0, {}}, ""};
  EXPECT_EQ(ask(a_complete(nobody)).verdict, Verdict::stale);
  EXPECT_EQ(state(1), State::pending);
}

// ---- §2 ----

TEST_P(StoreConformance, S02_reserve_of_another_generation_is_refused_and_changes_nothing) {
  Reserve verb = a_reserve(1);
  verb.generation = store().identity().generation + 1;
  auto reply = try_ask(verb);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, StoreError::Code::refused);
  EXPECT_FALSE(find(1));
  Accept accept = an_accept(1);
  accept.as.generation = verb.generation;
  EXPECT_FALSE(try_ask(accept));
  EXPECT_FALSE(find(1));
}

TEST_P(StoreConformance, S02_reserve_looks_under_older_names_before_it_makes_a_record) {
  const Execute old = run(1);
  Reserve verb = a_reserve(3, 2);
  verb.also = {{key(2)}, {key(1)}};
  EXPECT_TRUE(is<InProgress>(ask(verb)));
  EXPECT_FALSE(find(3));
  ask(a_release(old));
  const Execute again = run(verb);
  EXPECT_EQ(again.id, key(1)) << "the record that was found, under its own name";
  EXPECT_FALSE(find(3));
}

TEST_P(StoreConformance, S02_the_record_under_the_present_name_comes_first) {
  run(1, 1);
  run(3, 3);
  Reserve verb = a_reserve(3, 3);
  verb.also = {{key(1)}};
  EXPECT_EQ(run(verb).id, key(3));
}

TEST_P(StoreConformance, S02_a_dead_record_under_an_older_name_is_no_record) {
  Reserve old = a_reserve(1);
  old.tombstone = 0s;
  ask(a_complete(run(old)));
  clock.advance(retention);
  Reserve verb = a_reserve(3, 2);
  verb.also = {{key(1)}};
  EXPECT_EQ(run(verb).id, key(3));
}

TEST_P(StoreConformance, S02_fences_grow_over_all_keys_and_outlive_their_records) {
  Fence last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int number = 1; number <= 5; ++number) {
      Reserve verb = a_reserve(number);
      verb.tombstone = 0s;
      const Execute won = run(verb);
      EXPECT_GT(won.attempt.fence, last);
      last = won.attempt.fence;
      ask(a_complete(won));
    }
    clock.advance(retention);
    reap();
    reap();
    EXPECT_FALSE(find(1));
  }
}

}  // namespace
}  // namespace idem::test
