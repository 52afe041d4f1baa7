#include "core/evidence/event_source.hpp"
#include "core/record/stored_evidence.hpp"
#include "store/record_rows.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/store_identity.hpp"
#include "store_conformance/redis/asking.hpp"
#include "support/changed_by_hand.hpp"
#include "workers/reconciler.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

/// Protocol §22: an answer that the evidence log kept, and that is not what was written any more.
namespace idem::test {
namespace {

using Provider = workers::Provider;

Execute run_one(Store& store, int number) {
  Reserve verb = a_reserve(number);
  verb.generation = store.identity().generation;
  const auto outcome = ask_and_wait(store, verb);
  EXPECT_TRUE(outcome && is<Execute>(*outcome));
  return std::get<Execute>(*outcome);
}

/// An attempt that runs, and of which an event has said that it was done.
Execute run_and_keep(Store& store, int number) {
  const Execute attempt = run_one(store, number);
  ProviderEvent event{.id = "msg 1", .finding = Finding::found};
  event.response = StoredResponse{201, {}, "reported"};
  Resolve verb;
  verb.id = attempt.id;
  verb.fence = attempt.attempt.fence;
  verb.response = event.response;
  verb.source = "event:bank";
  verb.evidence = evidence_of(event, "{}", true);
  EXPECT_TRUE(ask_and_wait(store, verb));
  return attempt;
}

MarkUnknown due_at_once(const Execute& attempt) {
  MarkUnknown verb = a_mark_unknown(attempt);
  verb.reconcile_in.reset();
  return verb;
}

void expect_damaged(const StoreError& error, const RecordId& id) {
  EXPECT_EQ(error.code, StoreError::Code::damaged) << error.detail;
  EXPECT_EQ(error.record, id);
}

/// Both had their event kept, and the lines were damaged since.
void expect_left_to_people(Store& store, const Execute& unknown, const Execute& running) {
  const auto log = ask_and_wait(store, ReadEvidence{unknown.id});
  ASSERT_FALSE(log);
  expect_damaged(log.error(), unknown.id);

  int asked = 0;
  const auto provider = std::make_shared<Provider>();
  provider->name = "bank";
  provider->says = {.not_there = {*ResponseMatcher::parse("404")}};
  provider->ask = [&](const Record&, std::string_view) {
    ++asked;
    return Provider::Answer{404, ""};
  };
  std::vector<std::string> events;
  metrics::Shard shard;
  for (int turn = 0; turn < 3; ++turn) {
    workers::Reconciler reconciler(
        store, [&](auto, auto event, auto) { events.emplace_back(event); }, shard,
        [&](const Record&) { return provider; }, [](const Record&) { return std::string(); }, 1);
    reconciler.turn();
  }
  const auto record = ask_and_wait(store, Find{unknown.id});
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->state, State::unknown);
  EXPECT_FALSE((*record)->reconcile_after);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(events, std::vector<std::string>{"reconcile_given_up"}) << "once";

  const auto ended = ask_and_wait(store, a_complete(running, answer(500, "its own")));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->verdict, Verdict::done) << "the owner knows best";
  const auto freed = ask_and_wait(store, CacheBust{running.id, running.attempt.fence, "me"});
  ASSERT_FALSE(freed) << "a damaged line might say that it ran";
  expect_damaged(freed.error(), running.id);
}

class SqliteEvidenceDamage : public testing::Test {
 protected:
  std::unique_ptr<Store> open() const {
    auto store = open_sqlite(folder_.file("idem.db"), test_settings(), {.host = clock_.host()});
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  void sql(const std::string& text) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(folder_.file("idem.db").c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(change_by_hand(db, text, &message), SQLITE_OK) << message;
    sqlite3_free(message);
    sqlite3_close(db);
  }

  TempFolder folder_;
  TestClock clock_;
};

TEST_F(SqliteEvidenceDamage, S22_a_damaged_kept_event_completes_nothing) {
  auto store = open();
  const Execute unknown = run_and_keep(*store, 1);
  const Execute running = run_and_keep(*store, 2);
  ASSERT_TRUE(ask_and_wait(*store, due_at_once(unknown)));
  store.reset();
  sql("DROP TRIGGER evidence_is_never_changed;"
      "UPDATE idem_evidence SET evidence = replace(evidence, 'cmVwb3J0ZWQ', 'cmVwb3J0ZWR')");
  store = open();
  expect_left_to_people(*store, unknown, running);
}

TEST_F(SqliteEvidenceDamage, S22_each_member_of_a_line_is_checked_but_not_lines_of_older_files) {
  auto store = open();
  const Execute kept = run_and_keep(*store, 1);
  store.reset();
  const std::string drop = "DROP TRIGGER evidence_is_never_changed;";
  sql("CREATE TABLE sound AS SELECT * FROM idem_evidence");
  const auto is_read = [&](const std::string& change) {
    sql(drop + "UPDATE idem_evidence SET " + change);
    store = open();
    const bool is_sound = ask_and_wait(*store, ReadEvidence{kept.id}).has_value();
    store.reset();
    sql(drop +
        "UPDATE idem_evidence SET (fence, source, evidence, reason, before_state, after_state,"
        " applied, observed_at, recorded_at, checksum) = (SELECT fence, source, evidence, reason,"
        " before_state, after_state, applied, observed_at, recorded_at, checksum FROM sound)");
    return is_sound;
  };
  for (const char* const change :
       {"fence = fence + 1", "source = 'event:cash'", "evidence = evidence || ' '", "reason = 'x'",
        "before_state = 5", "after_state = 3", "applied = 1", "observed_at = observed_at + 1",
        "recorded_at = recorded_at - 1", "checksum = checksum + 1"}) {
    EXPECT_FALSE(is_read(change)) << change;
  }
  EXPECT_TRUE(is_read("checksum = checksum"));
  EXPECT_TRUE(is_read("checksum = NULL"));
}

TEST(RedisEvidenceDamage, S22_a_damaged_kept_event_completes_nothing) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Execute unknown = run_and_keep(*store, 1);
  const Execute running = run_and_keep(*store, 2);
  ASSERT_TRUE(ask_and_wait(*store, due_at_once(unknown)));
  const std::string changed = server.ask(
      "eval 'local k = redis.call(\"keys\", \"{*}e????????????????\")"
      " for _, name in ipairs(k) do local v = redis.call(\"lindex\", name, 0)"
      " redis.call(\"lset\", name, 0, (string.gsub(v, \"cmVwb3J0ZWQ\", \"cmVwb3J0ZWR\"))) end"
      " return #k' 0");
  ASSERT_NE(changed.find('2'), changed.npos) << changed;
  expect_left_to_people(*store, unknown, running);
}

TEST(RedisEvidenceDamage, S22_each_bit_of_a_line_is_checked_but_not_lines_of_older_stores) {
  const EvidenceEntry line{.fence = 7,
                           .source = "event:bank",
                           .evidence = R"({"said":"found"})",
                           .reason = "r",
                           .before = State::in_progress,
                           .after = State::in_progress};
  const std::string sound = to_evidence_value(key(1), line);
  ASSERT_EQ(parse_evidence_value(key(1), sound), line);
  EXPECT_FALSE(parse_evidence_value(key(2), sound)) << "another record's";
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(parse_evidence_value(key(1), damaged)) << bit;
  }
  EXPECT_EQ(parse_evidence_value(key(1), "\1" + encode_evidence(line)), line);
}

TEST(RedisIdentityDamage, S22_each_bit_of_the_identity_is_checked) {
  StoreIdentity identity;
  identity.recorded.generation = 3;
  identity.recorded.epochs = {{1, "an id"}};
  identity.is_complete = true;
  const std::string sound = to_identity_value({}, identity);
  ASSERT_TRUE(parse_identity_value(sound));
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(parse_identity_value(damaged)) << bit;
  }
  std::string older = sound.substr(0, sound.size() - 8);
  older[16] = 1;
  EXPECT_TRUE(parse_identity_value(older));
}

TEST(RedisIdentityDamage, S22_a_start_on_a_damaged_identity_is_refused) {
  const RedisServer server;
  open_at(server.url());
  server.ask("setrange {idem}identity 40 secret");  // In the store's own secret.
  const auto refused = open_redis(server.url(), test_settings(), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("its identity is damaged"), std::string::npos)
      << refused.error().detail;
}

}  // namespace
}  // namespace idem::test
