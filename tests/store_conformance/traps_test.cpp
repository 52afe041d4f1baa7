#include "store_conformance/harness.hpp"

#include <future>
#include <thread>

/// Failures of other idempotency layers (docs/rules.md, T): the lines that a store can
/// answer for.
namespace idem::test {
namespace {

TEST_P(StoreConformance, T01_of_many_claims_at_once_one_wins) {
  constexpr int threads = 8;
  constexpr int keys = 40;
  std::vector<std::atomic<int>> winners(keys);
  {
    std::vector<std::jthread> askers;
    for (int t = 0; t < threads; ++t) {
      askers.emplace_back([&, t] {
        for (int k = 0; k < keys; ++k) {
          if (is<Execute>(ask(a_reserve(1 + k, 1 + t)))) ++winners[static_cast<std::size_t>(k)];
        }
      });
    }
  }
  for (const auto& count : winners) EXPECT_EQ(count, 1);
}

TEST_P(StoreConformance, T01_a_new_start_overwrites_no_claim) {
  run(1);
  const std::string before = snapshot(1);
  reopen();
  EXPECT_EQ(snapshot(1), before);
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
}

TEST_P(StoreConformance, T02_a_lost_claim_is_answered_from_the_record) {
  const Execute first = run(1);
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  Reserve other = a_reserve(1, 3);
  other.fingerprints = {body(2)};
  EXPECT_TRUE(is<KeyMisuse>(ask(other)));
  ask(a_complete(first));
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
}

TEST_P(StoreConformance, T03_a_row_that_vanished_is_reserved_anew_and_never_run_without_one) {
  Reserve verb = a_reserve(1);
  verb.tombstone = 0s;
  ask(a_complete(run(verb)));
  clock.advance(retention);
  std::vector<std::future<bool>> won;
  for (int t = 2; t < 10; ++t) {
    won.push_back(std::async(std::launch::async, [&, t] {
      if (t % 2 == 0) reap();
      return is<Execute>(ask(a_reserve(1, t)));
    }));
  }
  int winners = 0;
  for (auto& reply : won) winners += reply.get() ? 1 : 0;
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(state(1), State::in_progress);
}

TEST_P(StoreConformance, T04_misuse_beats_in_progress) {
  run(1);
  Reserve other = a_reserve(1, 2);
  other.fingerprints = {body(2)};
  EXPECT_TRUE(is<KeyMisuse>(ask(other)));
}

/// The first owner's lease ran out, and a second attempt has the record.
struct TwoOwners {
  Execute first;
  Execute second;
};

TwoOwners two_owners(auto&& run, TestClock& clock) {
  Reserve verb = a_reserve(1, 1);
  verb.lease_policy = LeasePolicy::rerun;
  TwoOwners owners{run(verb), {}};
  clock.advance(lease);
  verb.token = token(2);
  owners.second = run(verb);
  return owners;
}

TEST_P(StoreConformance, T08_stale_owner_cannot_complete_over_the_successor) {
  const auto [first, second] = two_owners([&](const Reserve& verb) { return run(verb); }, clock);
  const std::string before = snapshot(1);
  EXPECT_EQ(ask(a_complete(first)), (OwnerReply{Verdict::stale, State::in_progress, std::nullopt}));
  EXPECT_EQ(snapshot(1), before);
  ask(a_complete(second, answer(201, "the successor's")));
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::stale);
  EXPECT_EQ(find(1)->response->body, "the successor's");
}

TEST_P(StoreConformance, T09_stale_owner_cannot_release_the_successor) {
  const auto [first, second] = two_owners([&](const Reserve& verb) { return run(verb); }, clock);
  const std::string before = snapshot(1);
  EXPECT_EQ(ask(a_release(first)).verdict, Verdict::stale);
  EXPECT_EQ(ask(a_mark_unknown(first)).verdict, Verdict::stale);
  EXPECT_EQ(snapshot(1), before);
}

TEST_P(StoreConformance, T10_the_same_asker_after_expiry_gets_a_new_attempt) {
  Reserve verb = a_reserve(1, 1);
  verb.lease_policy = LeasePolicy::rerun;
  const Execute first = run(verb);
  clock.advance(lease);
  const Execute again = run(verb);
  EXPECT_GT(again.attempt.fence, first.attempt.fence);
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::stale) << "the old fence is no longer current";
  EXPECT_EQ(ask(a_complete(again)).verdict, Verdict::done);
}

TEST_P(StoreConformance, T11_the_same_body_does_not_make_an_old_attempt_current) {
  const Execute first = run(1, 1);
  ask(a_release(first));
  const Execute second = run(1, 2);  // Same key, same fingerprint: ABA.
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::stale);
  EXPECT_EQ(ask(Renew{key(1), first.attempt, lease}).verdict, Verdict::stale);
  EXPECT_EQ(ask(a_complete(second)).verdict, Verdict::done);
}

TEST_P(StoreConformance, T12_giving_up_after_a_complete_keeps_the_answer) {
  const Execute first = run(1);
  ask(a_complete(first));  // Its reply may have been lost: the owner now gives up.
  EXPECT_EQ(ask(a_release(first)).verdict, Verdict::settled);
  EXPECT_EQ(ask(a_mark_unknown(first)).verdict, Verdict::settled);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
}

TEST_P(StoreConformance, T13_a_heartbeat_of_another_extends_nothing) {
  const Execute first = run(1);
  clock.advance(1s);
  const std::string before = snapshot(1);
  EXPECT_EQ(ask(Renew{key(1), {first.attempt.fence, token(9)}, lease}).verdict, Verdict::stale);
  EXPECT_EQ(snapshot(1), before);
  ask(a_complete(first));
  const std::string completed = snapshot(1);
  EXPECT_EQ(ask(Renew{key(1), first.attempt, lease}).verdict, Verdict::settled);
  EXPECT_EQ(snapshot(1), completed) << "a heartbeat after completion is no event";
}

TEST_P(StoreConformance, T15_every_verb_of_an_owner_reports_whether_it_applied) {
  const Execute first = run(1);
  clock.advance(lease);
  ASSERT_EQ(sweep().size(), 1u);  // Now unknown.
  EXPECT_EQ(ask(Renew{key(1), first.attempt, lease}),
            (OwnerReply{Verdict::stale, State::unknown, std::nullopt}));
  EXPECT_EQ(ask(Advance{key(1), first.attempt, "x"}).verdict, Verdict::stale);
  EXPECT_EQ(ask(Dispatched{key(1), first.attempt}).verdict, Verdict::stale);
}

TEST_P(StoreConformance, T28_an_empty_body_is_an_answer) {
  ask(a_complete(run(1), {204, {}, "", true}));
  reopen();
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Replay>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<Replay>(outcome).response, (StoredResponse{204, {}, "", true}));
}

TEST_P(StoreConformance, T28_any_bytes_come_back_as_they_were) {
  std::string bytes;
  for (int round = 0; round < 40; ++round) {
    for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  }
  Reserve verb = a_reserve(1);
  verb.scope = bytes.substr(0, 255);
  const Execute first = run(verb);
  ask(Advance{key(1), first.attempt, std::string("p\0q", 3)});
  const StoredResponse response{
      299, {{"X-" + bytes, bytes}, {"", ""}, {"A", "1"}, {"A", "2"}}, bytes};
  ask(a_complete(first, response));
  reopen();
  const auto record = find(1);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->response, response);
  EXPECT_EQ(record->scope, bytes.substr(0, 255));
  EXPECT_EQ(record->recovery_point, std::string("p\0q", 3));
}

TEST_P(StoreConformance, T24_an_answer_too_large_to_keep_still_proves_that_it_ran) {
  ask(a_complete(run(1), {201, {{"Location", "/p/1"}}, "", false}));
  const auto outcome = ask(a_reserve(1, 2));
  ASSERT_TRUE(is<Replay>(outcome));
  EXPECT_FALSE(std::get<Replay>(outcome).response.body_stored);
  EXPECT_EQ(std::get<Replay>(outcome).response.headers.size(), 1u);
}

}  // namespace
}  // namespace idem::test
