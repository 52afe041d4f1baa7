#include "store/store_copy.hpp"
#include "store_conformance/asking.hpp"

/// A store becomes the copy of another one (idem store copy): single records, and all of a store.
namespace idem::test {
namespace {

EvidenceEntry a_line(std::string evidence) {
  return {.fence = 7,
          .source = "operator",
          .evidence = std::move(evidence),
          .reason = "why",
          .before = State::unknown,
          .after = State::completed,
          .applied = true,
          .observed_at = StoreTime(Millis(1'700'000'000'123)),
          .recorded_at = StoreTime(Millis(1'700'000'000'456))};
}

class PutRecordConformance : public StoreConformance {
 protected:
  PutRecord put_of(int number, std::optional<Record> record) {
    PutRecord verb{.id = key(number)};
    if (record) record->id = verb.id;
    verb.record = std::move(record);
    return verb;
  }
  /// The record of `number` as it stands, then put under the number `as`.
  std::string put_again(int number, int as) {
    const auto record = find(number);
    EXPECT_TRUE(ask(put_of(as, record)).put);
    return describe(as_of(record, as));
  }
  static std::optional<Record> as_of(std::optional<Record> record, int number) {
    if (record) record->id = key(number);
    return record;
  }
  std::uint64_t count_of(State state) {
    return ask(Count{}).by_state[static_cast<std::size_t>(state)];
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, PutRecordConformance,
                         stores_and({"postgres_pooled:", "redis_cluster:"}), name_of_store);

TEST_P(PutRecordConformance, a_record_in_each_state_is_put_as_it_is) {
  ask(an_accept(1, "POST / later"));
  ask(a_complete(run(2), answer(201, "small")));
  ask(a_complete(run(3), {500, {{"X-A", "b"}, {"x-a", "c"}}, std::string(70'000, '\x01')}));
  ask(a_release(run(4), ReleaseBasis::declared));
  ask(a_mark_unknown(run(5)));
  run(6);
  Reserve unsent = a_reserve(7);
  unsent.dispatched = false;
  unsent.provider = "stripe";
  unsent.sealed_key = std::string("\0\xff key", 6);
  run(unsent);
  StoredResponse cut = answer(200, "");
  cut.body_stored = false;
  ask(a_complete(run(8), cut));
  std::vector<std::string> expected;
  for (int number = 1; number <= 8; ++number) expected.push_back(put_again(number, number + 20));
  reopen();
  for (int number = 1; number <= 8; ++number) {
    if (number == 6 || number == 7) continue;  // A start may have ended it.
    EXPECT_EQ(snapshot(number + 20), expected[static_cast<std::size_t>(number - 1)]) << number;
  }
  EXPECT_TRUE(is<Replay>(ask(a_reserve(22))));
  EXPECT_TRUE(is<Execute>(ask(a_reserve(24, 9))));
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(25))));
  const auto claimed = ask(Claim{token(50), "dispatcher", lease, true});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->request, "POST / later");
}

TEST_P(PutRecordConformance, its_time_goes_on_where_it_is_put) {
  ask(a_complete(run(1)));
  put_again(1, 21);
  ask(a_release(run(2)));
  put_again(2, 22);
  run(3);
  put_again(3, 23);
  clock.advance(lease);
  sweep();
  EXPECT_EQ(state(23), State::unknown);
  clock.advance(retention);
  while (!reap().empty()) {
  }
  EXPECT_EQ(state(21), State::expired);
  EXPECT_FALSE(find(22));
  clock.advance(tombstone);
  while (!reap().empty()) {
  }
  EXPECT_FALSE(find(21));
  EXPECT_EQ(count_of(State::completed) + count_of(State::expired), 0U);
}

TEST_P(PutRecordConformance, it_takes_the_place_of_what_is_there) {
  ask(a_complete(run(1), answer(201, std::string(50'000, 'x'))));
  ask(a_mark_unknown(run(2)));
  ask(an_accept(3, "POST / third"));
  run(4);
  const auto first = find(1);
  const auto second = find(2);
  const auto third = find(3);
  EXPECT_TRUE(ask(put_of(1, second)).put);
  EXPECT_TRUE(ask(put_of(2, third)).put);
  EXPECT_TRUE(ask(put_of(3, first)).put);
  EXPECT_TRUE(ask(put_of(4, first)).put);
  for (const bool again : {false, true}) {
    EXPECT_EQ(snapshot(1), describe(as_of(second, 1)));
    EXPECT_EQ(snapshot(2), describe(as_of(third, 2)));
    EXPECT_EQ(snapshot(3), describe(as_of(first, 3)));
    EXPECT_EQ(snapshot(4), describe(as_of(first, 4)));
    EXPECT_EQ(count_of(State::completed), 2U);
    EXPECT_EQ(count_of(State::unknown), 1U);
    EXPECT_EQ(count_of(State::pending), 1U);
    EXPECT_EQ(count_of(State::in_progress), 0U);
    EXPECT_EQ(ask(List{.state = State::pending}).size(), 1U);
    if (!again) reopen();
  }
  for (const int number : {1, 2, 3, 4}) EXPECT_TRUE(ask(put_of(number, std::nullopt)).put);
  EXPECT_TRUE(ask(put_of(9, std::nullopt)).put) << "there was none";
  EXPECT_EQ(ask(List{}).size(), 0U);
  EXPECT_FALSE(ask(Claim{token(50), "dispatcher", lease, true}));
  EXPECT_TRUE(is<Execute>(ask(a_reserve(1, 9))));
}

TEST_P(PutRecordConformance, its_evidence_is_appended_once) {
  ask(a_mark_unknown(run(1)));
  PutRecord verb = put_of(2, find(1));
  verb.evidence = {a_line("first"), a_line("second")};
  EXPECT_EQ(ask(verb), (PutRecord::Reply{true, 2}));
  EXPECT_EQ(ask(verb), (PutRecord::Reply{false, 2})) << "the log has two lines already";
  EXPECT_EQ(ask(ReadEvidence{key(2)}), verb.evidence);
  PutRecord further = put_of(2, std::nullopt);
  EXPECT_FALSE(ask(further).put);
  EXPECT_TRUE(find(2)) << "nothing was changed";
  further.behind = 2;
  further.evidence = {a_line("third")};
  EXPECT_EQ(ask(further), (PutRecord::Reply{true, 3}));
  EXPECT_FALSE(find(2));
  reopen();
  EXPECT_EQ(ask(ReadEvidence{key(2)}).size(), 3U) << "it outlives its record";
}

TEST_P(PutRecordConformance, no_fence_up_to_the_floor_is_granted) {
  const Fence before = run(1).attempt.fence;
  const Fence floor = before + (Fence{1} << 42U);
  EXPECT_TRUE(ask(PutRecord{.id = key(2), .fence_floor = floor}).put);
  const bool has_counter = before < 1'000'000'000;
  if (!has_counter) return;  // It has fences from the clock, above every count of attempts.
  EXPECT_GT(run(3).attempt.fence, floor);
  reopen();
  EXPECT_GT(run(4).attempt.fence, floor);
}

TEST_P(PutRecordConformance, it_counts_in_its_scopes_quota) {
  const Quota two{.active_keys = 2};
  const auto reserve = [&](int number) {
    Reserve verb = a_reserve(number);
    verb.quota = two;
    return verb;
  };
  ask(a_complete(run(reserve(1))));
  put_again(1, 21);
  EXPECT_TRUE(is<QuotaExceeded>(ask(reserve(2))));
  EXPECT_TRUE(ask(put_of(21, std::nullopt)).put);
  EXPECT_TRUE(is<Execute>(ask(reserve(3))));
  EXPECT_TRUE(is<QuotaExceeded>(ask(reserve(4))));
}

TEST_P(PutRecordConformance, a_record_of_another_id_is_refused) {
  run(1);
  PutRecord verb{.id = key(2), .record = find(1)};
  const auto refused = try_ask(verb);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::refused);
}

TEST_P(PutRecordConformance, a_run_that_another_one_followed_puts_nothing) {
  run(1);
  PutRecord verb = put_of(1, std::nullopt);
  verb.generation = store().identity().generation + 1;
  const auto refused = try_ask(verb);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::refused);
  EXPECT_TRUE(find(1));
}

TEST_P(PutRecordConformance, an_attempt_is_ended_only_while_it_still_runs) {
  for (const int number : {1, 2, 3}) {
    Reserve verb = a_reserve(number, number);
    verb.lease_policy = LeasePolicy::resume;
    run(verb);
  }
  clock.advance(lease + 1s);
  const auto end_of = [&](int number) {
    PutRecord verb = put_of(number, find(number));
    verb.ends = verb.record->attempt->token;
    verb.record->attempt->token = Token{};
    return verb;
  };
  const PutRecord first = end_of(1);
  EXPECT_TRUE(ask(first).put);
  EXPECT_FALSE(ask(first).put) << "it has ended";
  Complete late;
  late.id = key(1);
  late.attempt = {find(1)->fence(), *first.ends};
  late.response = answer();
  EXPECT_EQ(ask(late).verdict, Verdict::stale);

  const PutRecord second = end_of(2);
  late.id = key(2);
  late.attempt = {find(2)->fence(), *second.ends};
  EXPECT_EQ(ask(late).verdict, Verdict::done) << "its owner was first";
  EXPECT_FALSE(ask(second).put);
  EXPECT_EQ(state(2), State::completed);

  const PutRecord third = end_of(3);
  Reserve again = a_reserve(3, 9);
  again.lease_policy = LeasePolicy::resume;
  run(again);
  EXPECT_FALSE(ask(third).put) << "another attempt has it";
  EXPECT_EQ(find(3)->attempt->token, token(9));
  PutRecord none = put_of(3, std::nullopt);
  none.ends = token(9);
  EXPECT_FALSE(try_ask(none)) << "without its record";
}

TEST_P(PutRecordConformance, of_many_at_once_each_gets_its_own_reply) {
  ask(a_complete(run(1), answer(201, "small")));
  const auto record = find(1);
  constexpr int many = 100;
  constexpr int with_other_lines = 30;
  std::vector<StoreCall> puts;
  std::vector<StoreCall> reads;
  for (int number = 2; number <= many; ++number) {
    PutRecord verb = put_of(number, record);
    verb.generation = store().identity().generation;
    if (number % 3 == 0) verb.evidence = {a_line(std::to_string(number)), a_line("second")};
    if (number == with_other_lines) verb.behind = 1;
    if (number == many) verb.generation += 1;
    puts.emplace_back(std::move(verb));
    reads.emplace_back(ReadEvidence{key(number)});
  }
  const auto replies = ask_at_once(store(), std::move(puts));
  const auto read = ask_at_once(store(), std::move(reads));
  for (int number = 2; number <= many; ++number) {
    SCOPED_TRACE(number);
    const auto at = static_cast<std::size_t>(number - 2);
    const bool is_put = number != with_other_lines && number != many;
    EXPECT_EQ(find(number).has_value(), is_put);
    ASSERT_TRUE(read[at]);
    const auto& lines = std::get<std::vector<EvidenceEntry>>(*read[at]);
    EXPECT_EQ(lines.size(), is_put && number % 3 == 0 ? 2U : 0U);
    if (!lines.empty()) {
      EXPECT_EQ(lines.front().evidence, std::to_string(number));
    }
    if (number == many) {
      ASSERT_FALSE(replies[at]);
      continue;
    }
    ASSERT_TRUE(replies[at]);
    EXPECT_EQ(std::get<PutRecord::Reply>(*replies[at]), (PutRecord::Reply{is_put, lines.size()}));
  }
}

TEST_P(PutRecordConformance, a_line_keeps_its_moment) {
  const StoreTime then(Millis(1'600'000'000'789));
  EXPECT_TRUE(ask(AppendLine{.journal = "audit", .line = "old", .at = then}).appended);
  EXPECT_TRUE(ask(AppendLine{.journal = "audit", .behind = 1, .line = "new"}).appended);
  const auto read = ask(ReadLines{.journal = "audit"});
  ASSERT_EQ(read.lines.size(), 2U);
  EXPECT_EQ(read.lines[0].at, then);
  EXPECT_FALSE(read.lines[0].is_damaged);
  EXPECT_EQ(read.lines[1].at, clock.now());
}

// ---- all of a store ----

/// From a file to the store under test, and from there to another file.
class CopyConformance : public StoreConformance {
 protected:
  static void fill(Store& store, TestClock& clock) {
    const auto ask = [&](auto verb) {
      auto reply = test::try_ask(store, std::move(verb));
      EXPECT_TRUE(reply) << reply.error().detail;
      return std::move(*reply);
    };
    for (int number = 1; number <= 200; ++number) {
      ask(a_complete(test::run(store, number), answer(201, std::to_string(number))));
    }
    ask(a_complete(test::run(store, 201), answer(200, std::string(200'000, 'l'))));
    ask(a_release(test::run(store, 202)));
    ask(a_mark_unknown(test::run(store, 203)));
    ask(a_resolve(203, Resolve::As::completed, std::nullopt, clock.now()));
    ask(a_resolve(202, Resolve::As::completed, std::nullopt, clock.now()));
    Reserve again = a_reserve(204);
    again.lease_policy = LeasePolicy::resume;
    again.generation = store.identity().generation;
    ask(again);
    Accept accept = an_accept(205, "POST / of a dead dispatcher");
    accept.as.generation = store.identity().generation;
    accept.as.lease_policy = LeasePolicy::rerun;
    ask(accept);
    EXPECT_TRUE(ask(Claim{token(50), "dispatcher", lease, true}));
    accept = an_accept(206, "POST / that waits");
    accept.as.generation = store.identity().generation;
    ask(accept);
    for (std::uint64_t line = 0; line < 3; ++line) {
      ask(AppendLine{"audit", line, "line " + std::to_string(line)});
      ask(AppendLine{"orders", line, std::string(300, 'o')});
    }
    clock.advance(lease + 1s);
    test::run(store, 207);
  }
  static CopyPass copy(Store& from, Store& to, CopySource source = CopySource::kept) {
    EXPECT_TRUE(end_overdue(from));
    const auto pass = copy_records(from, to, source, [](const CopyPass&) {});
    EXPECT_TRUE(pass) << pass.error().why;
    return pass ? *pass : CopyPass{};
  }
  /// Every record and line of both, side by side.
  static void expect_alike(Store& from, Store& to) {
    for (int number = 1; number <= 206; ++number) {
      const auto theirs = test::try_ask(from, Find{key(number)});
      const auto ours = test::try_ask(to, Find{key(number)});
      ASSERT_TRUE(theirs && ours) << number;
      ASSERT_EQ(describe(*ours), describe(*theirs)) << number;
      EXPECT_EQ(*test::try_ask(to, ReadEvidence{key(number)}),
                *test::try_ask(from, ReadEvidence{key(number)}))
          << number;
    }
    for (const char* const journal : {"audit", "orders"}) {
      EXPECT_EQ(test::try_ask(to, ReadLines{.journal = journal})->lines,
                test::try_ask(from, ReadLines{.journal = journal})->lines);
    }
    EXPECT_FALSE(*test::try_ask(to, Find{key(207)})) << "it runs";
  }
  void copy_and_compare(Store& from, Store& to) {
    fill(from, clock);
    const CopyPass early = copy(from, to, CopySource::serving);
    EXPECT_EQ(early.records, 204U);
    EXPECT_EQ(early.running, 3U) << "also those past their lease";
    const CopyPass first = copy(from, to);
    EXPECT_EQ(first.records, 206U);
    EXPECT_EQ(first.put, 2U);
    EXPECT_EQ(first.running, 1U);
    EXPECT_EQ(first.journal_lines, 6U);
    EXPECT_FALSE(first.is_clean());
    expect_alike(from, to);
    const CopyPass second = copy(from, to);
    EXPECT_TRUE(second.is_clean()) << second.put << ' ' << second.lines_put;
    EXPECT_EQ(second.records, 206U);
    EXPECT_EQ(second.journal_lines, 6U);
    EXPECT_EQ(second.evidence, first.evidence);
    EXPECT_EQ(second.source, second.target);
    EXPECT_EQ(second.target, first.target);
    change_and_copy(from, to);
  }

 private:
  /// What changed is copied, and the digest of all shows it.
  void change_and_copy(Store& from, Store& to) {
    const CopyPass before = copy(from, to);
    const auto running = test::try_ask(from, Find{key(207)});
    ASSERT_TRUE(running && *running);
    Complete complete;
    complete.id = key(207);
    complete.attempt = *(*running)->attempt;
    complete.response = answer();
    EXPECT_TRUE(test::try_ask(from, complete));
    EXPECT_TRUE(test::try_ask(from, DropJournal{"orders", 3}));
    EXPECT_TRUE(test::try_ask(from, AppendLine{"orders", 0, "another"}));
    EXPECT_TRUE(test::try_ask(to, PutRecord{.id = key(250), .record = record_of(from, 207, 250)}));
    const CopyPass after = copy(from, to);
    EXPECT_EQ(after.put, 1U);
    EXPECT_EQ(after.removed, 1U);
    EXPECT_EQ(after.lines_put, 2U) << "the end of a journal, and a line";
    EXPECT_EQ(after.running, 0U);
    EXPECT_EQ(after.records, 207U);
    EXPECT_NE(after.target, before.target);
    EXPECT_TRUE(copy(from, to).is_clean());
    EXPECT_FALSE(*test::try_ask(to, Find{key(250)}));
    clock.advance(retention);
    EXPECT_EQ(copy(from, to).put, 1U) << "a request that waited for too long";
    while (!test::try_ask(to, Reap{100})->empty()) {
    }
    EXPECT_TRUE(copy(from, to).is_clean()) << "what one has reaped reads alike in both";
    EXPECT_EQ(copy(from, to).source, copy(from, to).target);
    end_attempts(from, to);
  }
  /// Of a closed source: its late owner settles nothing, and the copy is resumed.
  void end_attempts(Store& from, Store& to) {
    const auto before = *test::try_ask(from, Find{key(204)});
    ASSERT_TRUE(before);
    const CopyPass closed = copy(from, to, CopySource::closed);
    EXPECT_EQ(closed.running, 0U);
    EXPECT_EQ(closed.put, 2U) << "two attempts that may be resumed";
    EXPECT_TRUE(copy(from, to, CopySource::closed).is_clean());
    Complete late;
    late.id = key(204);
    late.attempt = *before->attempt;
    late.response = answer();
    EXPECT_EQ(test::try_ask(from, late)->verdict, Verdict::stale);
    EXPECT_EQ(test::try_ask(to, late)->verdict, Verdict::stale);
    Reserve again = a_reserve(204, 9);
    again.lease_policy = LeasePolicy::resume;
    const auto resumed = test::try_ask(to, again);
    ASSERT_TRUE(resumed && is<Execute>(*resumed));
    EXPECT_GT(std::get<Execute>(*resumed).attempt.fence, before->attempt->fence);
  }
  static std::optional<Record> record_of(Store& store, int number, int as) {
    auto record = *test::try_ask(store, Find{key(number)});
    if (record) record->id = key(as);
    return record;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, CopyConformance, stores_and({"redis_cluster:"}), name_of_store);

TEST_P(CopyConformance, a_copy_to_it_has_all_that_the_source_has) {
  StorePlace place("embedded:", clock);
  const auto source = place.open("source", test_settings());
  copy_and_compare(*source, store());
}

TEST_P(CopyConformance, a_copy_of_it_has_all_that_it_has) {
  StorePlace place("sqlite:", clock);
  const auto target = place.open("target", test_settings());
  copy_and_compare(store(), *target);
}

}  // namespace
}  // namespace idem::test
