#include "core/record/scope_key_line.hpp"
#include "core/record/sealed_parts.hpp"
#include "store/sealed_store.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/harness.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <atomic>
#include <future>

/// Keys of scopes in the store, and what is left without them (§14).
namespace idem::test {
namespace {

using Ended = Resolve::Verdict;

const Secret oldest_secret{1};
const Secret newer_secret{2};

EncryptionSettings scoped_by(std::vector<Secret> secrets = {oldest_secret}) {
  EncryptionSettings settings;
  settings.secrets = std::move(secrets);
  settings.accept_clear = false;
  settings.key_per_scope = true;
  return settings;
}
EncryptionSettings unscoped(std::vector<Secret> secrets = {oldest_secret}) {
  EncryptionSettings settings = scoped_by(std::move(secrets));
  settings.key_per_scope = false;
  return settings;
}

/// One store below, which several wrappers see, as processes would.
class ScopeKeysConformance : public StoreConformance {
 protected:
  std::unique_ptr<Store> process(const EncryptionSettings& settings = scoped_by()) {
    return make_sealed(std::make_unique<ForwardingStore>(store()), settings,
                       [now = steady_] { return MonotonicTime(Millis(now->load())); });
  }
  void pass(Millis time) { *steady_ += time.count(); }

  Reserve reserve_in(const std::string& scope, int number, int token_number = 1) {
    Reserve verb = a_reserve(number, token_number);
    verb.scope = scope;
    verb.generation = store().identity().generation;
    return verb;
  }
  template <class Verb>
  auto must(Store& by, Verb verb) {
    auto reply = ask_and_wait(by, std::move(verb));
    EXPECT_TRUE(reply) << reply.error().detail;
    return reply ? std::move(*reply) : typename Verb::Reply{};
  }
  Execute run_in(Store& by, const std::string& scope, int number) {
    const auto outcome = must(by, reserve_in(scope, number));
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }
  void complete_in(Store& by, const std::string& scope, int number) {
    EXPECT_EQ(must(by, a_complete(run_in(by, scope, number))).verdict, Verdict::done);
  }
  void expect_replay(Store& by, const std::string& scope, int number) {
    const auto reply = ask_and_wait(by, reserve_in(scope, number, 2));
    ASSERT_TRUE(reply) << reply.error().detail;
    ASSERT_TRUE(is<Replay>(*reply)) << describe(*reply);
    EXPECT_EQ(std::get<Replay>(*reply).response, answer());
    EXPECT_EQ(must(by, Find{key(number)})->response, answer());
  }
  /// A retry learns that it ran, and does not run.
  void expect_shredded(Store& by, const std::string& scope, int number) {
    const StoredResponse left{201, {}, {}, false};
    const auto reply = ask_and_wait(by, reserve_in(scope, number, 2));
    ASSERT_TRUE(reply) << reply.error().detail;
    ASSERT_TRUE(is<Replay>(*reply)) << describe(*reply);
    EXPECT_EQ(std::get<Replay>(*reply).response, left);
    EXPECT_EQ(must(by, Find{key(number)})->response, left);
  }
  void expect_damaged(Store& by, const std::string& scope, int number, const std::string& part) {
    const auto reply = ask_and_wait(by, reserve_in(scope, number, 2));
    ASSERT_FALSE(reply) << describe(*reply);
    EXPECT_EQ(reply.error().code, StoreError::Code::damaged);
    EXPECT_EQ(reply.error().record, key(number));
    EXPECT_NE(reply.error().detail.find(part), std::string::npos) << reply.error().detail;
  }
  std::vector<JournalSummary> keys_of(const std::string& scope) {
    return ask(ListJournals{scope_key_prefix(scope), {}, 100});
  }
  KeyRef ref_of(int number) {
    const auto record = find(number);
    const auto ref = record && record->response ? key_of(*record->response)
                                                : std::expected<KeyRef, std::string_view>();
    EXPECT_TRUE(ref);
    return ref.value_or(KeyRef{});
  }

  // The two steps of a shred, as admin/shred.cpp makes them.
  std::string begin_shred(Store& by, const std::string& scope) {
    const auto last = number_of_scope_key(keys_of(scope).back().name).value_or(0);
    std::string journal = scope_key_journal(scope_key_prefix(scope), last + 1);
    EXPECT_TRUE(must(by, AppendLine{journal, 0, {}}).appended);
    return journal;
  }
  void end_shred(Store& by, const std::string& scope, const std::string& newest) {
    for (const auto& one : keys_of(scope)) {
      if (one.name < newest) {
        EXPECT_TRUE(must(by, DropJournal{one.name, one.last}).dropped);
      }
    }
  }
  void shred(Store& by, const std::string& scope) { end_shred(by, scope, begin_shred(by, scope)); }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> steady_ =
      std::make_shared<std::atomic<std::int64_t>>(1'000'000);
};

TEST_P(ScopeKeysConformance, S14_each_scope_seals_under_its_own_key_and_all_processes_open) {
  const auto first = process();
  complete_in(*first, "tenant-1", 1);
  complete_in(*first, "tenant-2", 2);
  complete_in(*first, "tenant-1", 3);
  EXPECT_EQ(ref_of(1).kind, KeyKind::scope);
  EXPECT_EQ(ref_of(1), ref_of(3));
  EXPECT_NE(ref_of(1), ref_of(2));
  EXPECT_EQ(keys_of("tenant-1").size(), 1U);
  for (const auto& settings : {scoped_by(), unscoped(), scoped_by({newer_secret, oldest_secret})}) {
    const auto other = process(settings);
    expect_replay(*other, "tenant-1", 1);
    expect_replay(*other, "tenant-2", 2);
  }
  const auto lines = must(*first, ReadLines{keys_of("tenant-1")[0].name, 0, 9}).lines;
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(lines[0].is_damaged) << lines[0].why;
  EXPECT_EQ(lines[0].bytes, "") << "nobody reads a key";
  expect_damaged(*process(unscoped({})), "tenant-1", 1, "there are no encryption.secret_files");
  expect_damaged(*process(unscoped({newer_secret})), "tenant-1", 1,
                 "none of encryption.secret_files");
}

TEST_P(ScopeKeysConformance, S14_a_process_without_the_secret_of_a_scopes_key_runs_nothing) {
  complete_in(*process(), "tenant-1", 1);
  const auto without = process(scoped_by({newer_secret}));
  expect_damaged(*without, "tenant-1", 2, "none of encryption.secret_files gives");
  EXPECT_FALSE(find(2)) << "nothing was reserved";
  EXPECT_EQ(keys_of("tenant-1").size(), 1U);
}

TEST_P(ScopeKeysConformance, S14_processes_that_meet_a_new_scope_at_once_have_one_key) {
  const auto first = process();
  const auto second = process();
  for (int number = 1; number <= 20; number += 2) {
    const std::string scope = "new-" + std::to_string(number);
    auto one = std::async(std::launch::async, [&] { complete_in(*first, scope, number); });
    complete_in(*second, scope, number + 1);
    one.get();
    EXPECT_EQ(keys_of(scope).size(), 1U);
    expect_replay(*second, scope, number);
    expect_replay(*first, scope, number + 1);
  }
}

TEST_P(ScopeKeysConformance, S14_a_shredded_answer_is_one_that_was_not_kept_and_runs_never) {
  const auto first = process();
  complete_in(*first, "tenant-1", 1);
  complete_in(*first, "tenant-2", 2);
  const auto other = process();
  expect_replay(*other, "tenant-1", 1);
  const std::string newest = begin_shred(*first, "tenant-1");
  expect_replay(*first, "tenant-1", 1);
  complete_in(*first, "tenant-1", 3);
  end_shred(*first, "tenant-1", newest);
  expect_shredded(*first, "tenant-1", 1);
  expect_replay(*first, "tenant-1", 3);
  expect_replay(*first, "tenant-2", 2);
  expect_replay(*other, "tenant-1", 1);  // From its memory, for as long as the keys live there.
  pass(limits::scope_keys_life);
  expect_shredded(*other, "tenant-1", 1);
  expect_replay(*other, "tenant-1", 3);
  expect_replay(*other, "tenant-2", 2);
  expect_shredded(*process(unscoped()), "tenant-1", 1);

  // And again, with a key that has two before it.
  shred(*other, "tenant-1");
  const auto fresh = process();
  expect_shredded(*fresh, "tenant-1", 1);
  expect_shredded(*fresh, "tenant-1", 3);
  expect_replay(*fresh, "tenant-2", 2);
}

TEST_P(ScopeKeysConformance,
       S14_behind_the_life_of_keys_nothing_is_sealed_under_one_before_a_shred) {
  const auto first = process();
  const auto busy = process();
  complete_in(*busy, "tenant-1", 1);
  const KeyRef before = ref_of(1);
  const Execute under_way = run_in(*busy, "tenant-1", 2);
  const std::string newest = begin_shred(*first, "tenant-1");
  complete_in(*busy, "tenant-1", 3);
  EXPECT_EQ(ref_of(3), before) << "it does not know of the shred yet";
  pass(limits::scope_keys_life);
  EXPECT_EQ(must(*busy, a_complete(under_way)).verdict, Verdict::done);
  complete_in(*busy, "tenant-1", 4);
  EXPECT_NE(ref_of(2), before);
  EXPECT_EQ(ref_of(2), ref_of(4));
  static_assert(limits::scope_key_shred_wait > limits::scope_keys_life);
  end_shred(*first, "tenant-1", newest);
  pass(limits::scope_keys_life);
  expect_shredded(*busy, "tenant-1", 3);
  expect_replay(*busy, "tenant-1", 2);
  expect_replay(*busy, "tenant-1", 4);
}

TEST_P(ScopeKeysConformance, S14_an_answer_under_a_key_that_never_was_is_damaged) {
  const auto first = process();
  complete_in(*first, "tenant-1", 1);
  // Not by a shred: an attacker, or a mishap.
  for (const auto& one : keys_of("tenant-1")) ask(DropJournal{one.name, one.last});
  const auto other = process();
  expect_damaged(*other, "tenant-1", 1, "which is not in the store");
  complete_in(*other, "tenant-1", 2);
  expect_damaged(*other, "tenant-1", 1, "which is not in the store");
  expect_replay(*other, "tenant-1", 2);
}

TEST_P(ScopeKeysConformance, S14_a_forged_key_of_a_scope_is_not_used) {
  const std::string journal = scope_key_journal(scope_key_prefix("tenant-1"), 1);
  ScopeKeyLine forged;
  ask(AppendLine{journal, 0, forged.text()});
  EncryptionSettings settings = scoped_by();
  settings.accept_clear = true;
  expect_damaged(*process(settings), "tenant-1", 1, "is in clear");
  // Nor that of another scope.
  const auto first = process();
  complete_in(*first, "tenant-2", 2);
  const auto theirs = ask(ReadLines{keys_of("tenant-2")[0].name, 0, 1}).lines;
  ask(AppendLine{scope_key_journal(scope_key_prefix("tenant-3"), 1), 0, theirs[0].bytes});
  expect_damaged(*first, "tenant-3", 3, "written at another place");
  EXPECT_FALSE(find(1));
  EXPECT_FALSE(find(3));
}

TEST_P(ScopeKeysConformance, S14_no_one_above_writes_a_key) {
  const auto first = process();
  const std::string journal = scope_key_journal(scope_key_prefix("tenant-1"), 1);
  for (const auto& verb : {AppendLine{journal, 0, ScopeKeyLine{}.text()},
                           AppendLine{std::string(scope_key_journals) + "x", 0, {}}}) {
    const auto refused = ask_and_wait(*first, verb);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, StoreError::Code::refused);
  }
  EXPECT_TRUE(keys_of("tenant-1").empty());
}

TEST_P(ScopeKeysConformance, S14_a_lost_key_can_be_shredded_and_the_scope_runs_again) {
  complete_in(*process(), "tenant-1", 1);
  const auto without = process(scoped_by({newer_secret}));
  expect_damaged(*without, "tenant-1", 2, "none of encryption.secret_files gives");
  shred(*without, "tenant-1");
  complete_in(*without, "tenant-1", 2);
  expect_replay(*without, "tenant-1", 2);
  expect_damaged(*without, "tenant-1", 1, "which is not in the store");
}

TEST_P(ScopeKeysConformance, S14_a_rekey_moves_records_and_keys) {
  const auto before = process(unscoped());
  complete_in(*before, "tenant-1", 1);
  Accept accept = an_accept(2);
  accept.as.generation = store().identity().generation;
  must(*before, accept);
  const auto rekey = [&](Store& by, int number) {
    Reseal verb;
    verb.id = key(number);
    return must(by, std::move(verb)).verdict;
  };
  const auto with = process();
  EXPECT_EQ(rekey(*with, 1), Ended::done);
  EXPECT_EQ(rekey(*with, 2), Ended::done);
  EXPECT_EQ(rekey(*with, 1), Ended::wrong_state);
  EXPECT_EQ(rekey(*with, 2), Ended::wrong_state);
  EXPECT_EQ(ref_of(1).kind, KeyKind::scope);
  expect_replay(*with, "tenant-1", 1);
  EXPECT_EQ(must(*with, Find{key(2)})->stored_request, an_accept(2).request);

  // A new secret needs no new form of the records.
  const auto rotated = process(scoped_by({newer_secret, oldest_secret}));
  EXPECT_EQ(rekey(*rotated, 1), Ended::wrong_state);
  const auto journal = keys_of("tenant-1").at(0);
  EXPECT_TRUE(must(*rotated, AppendLine{journal.name, journal.last, {}}).appended);
  EXPECT_FALSE(must(*rotated, AppendLine{journal.name, journal.last + 1, {}}).appended);
  expect_replay(*process(scoped_by({newer_secret})), "tenant-1", 1);
  const auto missing = ask_and_wait(*process(scoped_by({oldest_secret})),
                                    AppendLine{journal.name, journal.last + 1, {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, StoreError::Code::damaged);

  // And back.
  const auto off = process(unscoped({newer_secret}));
  EXPECT_EQ(rekey(*off, 1), Ended::done);
  EXPECT_EQ(rekey(*off, 2), Ended::done);
  EXPECT_EQ(ref_of(1), named_key(newer_secret).ref);
  expect_replay(*off, "tenant-1", 1);
}

TEST_P(ScopeKeysConformance, S14_a_rekey_takes_nothing_away_from_a_shred) {
  const auto first = process();
  complete_in(*first, "tenant-1", 1);
  const std::string newest = begin_shred(*first, "tenant-1");
  Reseal verb;
  verb.id = key(1);
  EXPECT_EQ(must(*first, verb).verdict, Ended::too_early);
  EXPECT_EQ(must(*process(unscoped()), verb).verdict, Ended::too_early);
  end_shred(*first, "tenant-1", newest);
  EXPECT_EQ(must(*first, verb).verdict, Ended::wrong_state);
  expect_shredded(*first, "tenant-1", 1);
}

TEST_P(ScopeKeysConformance, S14_a_stored_request_and_kept_evidence_go_with_the_key) {
  const auto first = process();
  Accept accept = an_accept(1);
  accept.as.generation = store().identity().generation;
  must(*first, accept);
  EXPECT_EQ(key_of_request(*find(1)->stored_request)->kind, KeyKind::scope);
  const Execute won = run_in(*first, "tenant-1", 2);
  Resolve event = a_resolve(2, Resolve::As::completed, won.attempt.fence, clock.now());
  event.evidence = R"({"event":"e1","kept":{"status":201,"body_b64":"aXQgcmFu"}})";
  must(*first, event);
  EXPECT_EQ(key_of_evidence(ask(ReadEvidence{key(2)}).at(0).evidence)->kind, KeyKind::scope);
  const auto other = process();
  EXPECT_EQ(must(*other, ReadEvidence{key(2)}).at(0).evidence, event.evidence);
  EXPECT_EQ(must(*other, Find{key(1)})->stored_request, an_accept(1).request);

  shred(*other, "tenant-1");
  const auto unreadable = ask_and_wait(*other, ReadEvidence{key(2)});
  ASSERT_FALSE(unreadable) << "an event that says that it ran is not overlooked";
  EXPECT_NE(unreadable.error().detail.find("was shredded"), std::string::npos);
  const auto claimed = ask_and_wait(*other, Claim{token(50), "dispatcher", lease, false});
  ASSERT_FALSE(claimed);
  EXPECT_NE(claimed.error().detail.find("was shredded"), std::string::npos)
      << claimed.error().detail;
  EXPECT_EQ(find(1)->state, State::pending);
}

// ---- journals ----

TEST_P(ScopeKeysConformance, S14_lines_of_journals_are_sealed_for_their_place) {
  const auto first = process(unscoped());
  const std::string order = R"({"line":"ask","order":"canary"})";
  EXPECT_TRUE(must(*first, AppendLine{"approval/1", 0, order}).appended);
  EXPECT_TRUE(must(*first, AppendLine{"approval/1", 1, "{}"}).appended);
  const auto below = ask(ReadLines{"approval/1", 0, 9}).lines;
  ASSERT_EQ(below.size(), 2U);
  EXPECT_EQ(below[0].bytes.find("canary"), std::string::npos);
  const auto read =
      must(*process(unscoped({newer_secret, oldest_secret})), ReadLines{"approval/1", 0, 9}).lines;
  EXPECT_EQ(read[0].bytes, order);
  EXPECT_EQ(read[1].bytes, "{}");
  EXPECT_FALSE(read[0].is_damaged || read[1].is_damaged);

  EXPECT_TRUE(must(*first, AppendLine{"audit", 0, "in clear"}).appended);
  EXPECT_EQ(ask(ReadLines{"audit", 0, 1}).lines[0].bytes, "in clear");
  EXPECT_EQ(must(*first, ReadLines{"audit", 0, 1}).lines[0].bytes, "in clear");

  const auto why = [&](const std::string& journal, const std::string& bytes) {
    ask(AppendLine{journal, 0, bytes});
    const auto line = must(*first, ReadLines{journal, 0, 1}).lines.at(0);
    EXPECT_TRUE(line.is_damaged);
    return line.why;
  };
  EXPECT_NE(why("approval/2", below[0].bytes).find("at another place"), std::string::npos);
  EXPECT_NE(why("approval/3", below[1].bytes).find("at another place"), std::string::npos);
  EXPECT_NE(why("approval/4", order).find("in clear"), std::string::npos);
  EXPECT_NE(why("approval/5", below[0].bytes.substr(0, 40)).find("cut short"), std::string::npos);
  const auto without =
      must(*process(unscoped({newer_secret})), ReadLines{"approval/1", 0, 1}).lines.at(0);
  EXPECT_TRUE(without.is_damaged);
  EXPECT_NE(without.why.find("none of encryption.secret_files gives"), std::string::npos);
  const auto none = must(*process(unscoped({})), ReadLines{"approval/1", 0, 1}).lines.at(0);
  EXPECT_TRUE(none.is_damaged);
}

INSTANTIATE_TEST_SUITE_P(Stores, ScopeKeysConformance, stores_and({"hybrid:"}), name_of_store);

}  // namespace
}  // namespace idem::test
