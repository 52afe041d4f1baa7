#include "store_conformance/harness.hpp"

#include <set>

/// protocol.md §15, and §3's rows of the reaper.
namespace idem::test {
namespace {

TEST_P(StoreConformance, S03_reap_drops_the_body_then_the_tombstone) {
  ask(a_complete(run(1)));
  clock.advance(retention - 1ms);
  EXPECT_TRUE(reap().empty());
  clock.advance(1ms);
  const std::string unreaped = snapshot(1);
  const auto steps = reap();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0], (LifecycleStep{key(1), State::completed, State::expired}));
  EXPECT_EQ(snapshot(1), unreaped) << "a reader cannot tell whether the reaper has been here";
  EXPECT_FALSE(find(1)->response);
  clock.advance(tombstone - 1ms);
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(state(1), State::expired);
  clock.advance(1ms);
  EXPECT_FALSE(find(1));
  const auto last = reap();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0], (LifecycleStep{key(1), State::expired, std::nullopt}));
  EXPECT_FALSE(find(1));
}

TEST_P(StoreConformance, S03_reap_drops_first_what_was_due_first_and_reports_how_late_it_is) {
  const auto complete = [&](int number, Millis keeps, Millis stays) {
    Reserve verb = a_reserve(number);
    verb.retention = keeps;
    verb.tombstone = stays;
    ask(a_complete(run(verb)));
  };
  complete(1, 1s, 10s);
  complete(2, 1s, 30s);
  clock.advance(1s);
  ASSERT_EQ(reap().size(), 2u);
  // Due from now: tombstone 1 at 10 s, answer 3 at 20 s, tombstone 2 at 30 s, answer 4 at 40 s.
  complete(4, 40s, 1h);
  complete(3, 20s, 1h);
  clock.advance(50s);
  std::vector<LifecycleStep> steps;
  for (int i = 0; i < 4; ++i) {
    for (const LifecycleStep& step : reap(1)) steps.push_back(step);
  }
  EXPECT_EQ(steps, (std::vector<LifecycleStep>{
                       {key(1), State::expired, std::nullopt, 40s},
                       {key(3), State::completed, State::expired, 30s},
                       {key(2), State::expired, std::nullopt, 20s},
                       {key(4), State::completed, State::expired, 10s},
                   }));
}

TEST_P(StoreConformance, S03_reap_drops_failed_records) {
  ask(a_release(run(1)));
  clock.advance(retention);
  const auto steps = reap();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0], (LifecycleStep{key(1), State::failed_retryable, std::nullopt}));
}

TEST_P(StoreConformance, T52_in_progress_and_unknown_are_never_reaped) {
  run(1);
  ask(a_mark_unknown(run(2)));
  Reserve rerun = a_reserve(3);
  rerun.lease_policy = LeasePolicy::rerun;
  run(rerun);
  ask(an_accept(4));
  const Execute claimed = claim();
  ask(a_mark_unknown(claimed));
  clock.advance(20 * (retention + tombstone));
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(sweep().size(), 1u) << "only the one whose lease ran out, to unknown";
  clock.advance(20 * (retention + tombstone));
  EXPECT_TRUE(reap().empty());
  for (const int number : {1, 2, 4}) EXPECT_EQ(state(number), State::unknown);
  EXPECT_EQ(state(3), State::in_progress);
}

TEST_P(StoreConformance, T52_reap_after_a_fresh_reserve_leaves_it_alone) {
  Reserve verb = a_reserve(1);
  verb.tombstone = 0s;
  ask(a_complete(run(verb)));
  clock.advance(retention);
  run(1, 2);  // Over the dead record, before the reaper came.
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(state(1), State::in_progress);
}

TEST_P(StoreConformance, T50_a_replay_refreshes_nothing) {
  ask(a_complete(run(1)));
  const std::string before = snapshot(1);
  for (int i = 0; i < 5; ++i) {
    clock.advance(1h);
    EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2 + i))));
  }
  EXPECT_EQ(snapshot(1), before);
}

TEST_P(StoreConformance, T50_lengths_that_are_none_are_refused) {
  const auto refused = [&](const Reserve& verb) {
    const auto reply = try_ask(verb);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, StoreError::Code::refused);
    EXPECT_FALSE(find(1));
  };
  for (const Millis bad : {Millis(0), Millis(-1), Millis::max(), Millis::min()}) {
    Reserve verb = a_reserve(1);
    verb.lease = bad;
    refused(verb);
    verb = a_reserve(1);
    verb.retention = bad;
    refused(verb);
    if (bad == Millis(0)) continue;
    verb = a_reserve(1);
    verb.tombstone = bad;
    refused(verb);
  }
  Reserve bare = a_reserve(1);
  bare.fingerprints.clear();
  refused(bare);
  EXPECT_FALSE(try_ask(Renew{key(1), {1, token(1)}, Millis(-5)}));
  EXPECT_FALSE(try_ask(Claim{token(1), "x", Millis(0), true}));
}

TEST_P(StoreConformance, S15_retention_counts_from_completion_release_and_acceptance) {
  const Execute first = run(1);
  clock.advance(10s);
  ask(a_complete(first));
  EXPECT_EQ(find(1)->expires_at, clock.now() + retention);
  const Execute second = run(2);
  clock.advance(10s);
  ask(a_release(second));
  EXPECT_EQ(find(2)->expires_at, clock.now() + retention);
  const StoreTime accepted = clock.now();
  ask(an_accept(3));
  clock.advance(10s);
  ask(a_release(claim()));
  EXPECT_EQ(find(3)->expires_at, accepted + retention);
}

TEST_P(StoreConformance, S15_sweep_and_reap_do_no_more_than_they_are_asked) {
  for (int number = 1; number <= 5; ++number) run(number);
  clock.advance(lease);
  EXPECT_TRUE(sweep(0).empty());
  EXPECT_EQ(sweep(2).size(), 2u);
  EXPECT_EQ(sweep(2).size(), 2u);
  EXPECT_EQ(sweep(2).size(), 1u);
  EXPECT_TRUE(sweep(2).empty());
  for (int number = 11; number <= 15; ++number) ask(a_complete(run(number)));
  clock.advance(retention);
  EXPECT_EQ(reap(3).size(), 3u);
  EXPECT_EQ(reap(3).size(), 2u);
  EXPECT_TRUE(reap(3).empty());
}

TEST_P(StoreConformance, S15_of_records_that_are_asked_for_together_each_is_due_at_its_own_time) {
  constexpr int many = 40;
  const auto together = [&](int first, int step, auto verb_of) {
    std::vector<std::future<void>> replies;
    for (int number = first; number <= many; number += step) {
      auto done = std::make_shared<std::promise<void>>();
      replies.push_back(done->get_future());
      idem::ask(store(), verb_of(number), [done](const auto& reply) {
        EXPECT_TRUE(reply.has_value());
        done->set_value();
      });
    }
    for (auto& reply : replies) reply.wait();
  };
  together(1, 1, [&](int number) {
    Reserve verb = a_reserve(number);
    verb.generation = store().identity().generation;
    verb.lease = number % 4 == 0 ? lease : 2 * lease;
    verb.retention = number % 2 == 0 ? 1h : 2h;
    verb.tombstone = 1h;
    return verb;
  });
  // Every second one is completed; of the others two renew, and the leases of the rest end.
  together(1, 2, [](int number) {
    return Complete{key(number), {std::nullopt, token(1)}, answer(), ""};
  });
  together(2, 2, [](int number) {
    return Renew{key(number), {std::nullopt, token(1)}, number > 36 ? 3 * lease : Millis(1)};
  });
  clock.advance(lease);
  EXPECT_EQ(sweep().size(), 9u);
  clock.advance(lease);
  EXPECT_EQ(sweep().size(), 9u);
  EXPECT_TRUE(sweep().empty());
  clock.advance(lease);
  EXPECT_EQ(sweep().size(), 2u);
  EXPECT_EQ(ask(Count{}).by_state[static_cast<std::size_t>(State::unknown)], 20u);
  for (int number = 2; number <= many; number += 4) {
    ask(a_resolve(number, Resolve::As::completed, find(number)->fence(), clock.now()));
  }
  clock.advance(1h);
  EXPECT_EQ(reap().size(), 10u) << "those that were resolved, after an hour";
  clock.advance(1h);
  EXPECT_EQ(reap().size(), 30u) << "the others' answers, and the tombstones of those";
  clock.advance(1h);
  EXPECT_EQ(reap().size(), 20u);
  EXPECT_TRUE(reap().empty());
}

TEST_P(StoreConformance, S15_records_outlive_a_restart) {
  const Execute first = run(1);
  ask(a_complete(first));
  const Execute second = run(2);
  ask(an_accept(3));
  const std::string before = snapshot(1) + snapshot(2) + snapshot(3);
  clock.advance(10s);
  reopen();
  EXPECT_EQ(snapshot(1) + snapshot(2) + snapshot(3), before);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 9))));
  EXPECT_EQ(ask(a_complete(second)).verdict, Verdict::done);
}

// ---- reading ----

TEST_P(StoreConformance, S03_list_filters_and_pages_by_id) {
  for (int number = 9; number >= 1; --number) {
    Reserve verb = a_reserve(number);
    verb.scope = number % 2 == 0 ? "even" : "odd";
    verb.operation = number < 4 ? "low" : "high";
    const Execute won = run(verb);
    if (number == 5) ask(a_complete(won));
    if (number == 6) ask(a_mark_unknown(won));
    clock.advance(1s);
  }
  const auto numbers = [&](const List& verb) {
    std::vector<int> out;
    for (const Record& record : ask(verb)) out.push_back(record.id.bytes[0]);
    return out;
  };
  using Numbers = std::vector<int>;
  EXPECT_EQ(numbers({}), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(numbers({.limit = 3}), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers({.after = key(3), .limit = 3}), (Numbers{4, 5, 6}));
  EXPECT_EQ(numbers({.limit = 0}), Numbers{});
  EXPECT_EQ(numbers({.scope = "even"}), (Numbers{2, 4, 6, 8}));
  EXPECT_EQ(numbers({.operation = "low"}), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers({.scope = "odd", .operation = "low"}), (Numbers{1, 3}));
  EXPECT_EQ(numbers({.state = State::unknown}), Numbers{6});
  EXPECT_EQ(numbers({.state = State::unknown, .after = key(6)}), Numbers{});
  EXPECT_EQ(numbers({.state = State::completed}), Numbers{5});
  EXPECT_EQ(numbers({.created_before = clock.now() - 7s}), (Numbers{8, 9}));
  const auto listed = ask(List{.state = State::completed});
  ASSERT_TRUE(listed.size() == 1 && listed[0].response);
  EXPECT_EQ(listed[0].response->status, 201);
  EXPECT_EQ(listed[0].response->body, "") << "without bodies";
  clock.advance(retention);
  EXPECT_EQ(numbers({.state = State::completed}), Numbers{});
  EXPECT_EQ(numbers({.state = State::expired}), Numbers{5});
}

TEST_P(StoreConformance, S03_list_sees_every_record_of_a_long_table) {
  constexpr int many = 5'000;  // More than a slice.
  std::vector<std::future<void>> replies;
  for (int i = 0; i < many; ++i) {
    Reserve verb = a_reserve(0);
    verb.id.bytes = {};
    verb.id.bytes[0] = static_cast<std::uint8_t>(i * 7);
    verb.id.bytes[1] = static_cast<std::uint8_t>(i >> 8);
    verb.id.bytes[2] = static_cast<std::uint8_t>(i);
    verb.scope = i % 1'000 == 0 ? "rare" : "common";
    verb.generation = store().identity().generation;
    auto done = std::make_shared<std::promise<void>>();
    replies.push_back(done->get_future());
    idem::ask(store(), std::move(verb), [done](const auto& reply) {
      EXPECT_TRUE(reply.has_value());
      done->set_value();
    });
  }
  for (auto& reply : replies) reply.wait();
  EXPECT_EQ(ask(List{.scope = "rare", .limit = 100}).size(), 5u);
  std::set<RecordId> seen;
  List page{.limit = 700};
  for (;;) {
    const auto records = ask(page);
    for (const Record& record : records) EXPECT_TRUE(seen.insert(record.id).second);
    if (records.size() < page.limit) break;
    page.after = records.back().id;
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(many));
}

}  // namespace
}  // namespace idem::test
