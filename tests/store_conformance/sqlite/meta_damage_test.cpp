#include "store/sqlite/check_file.hpp"
#include "store/sqlite/recover_file.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

/// What the file keeps beside its records: one damaged bit there would concern every key.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* sqlite_back_to_version_2 =
    "ALTER TABLE idem_meta DROP COLUMN checksum; ALTER TABLE idem_evidence DROP COLUMN checksum;"
    "DELETE FROM idem_meta WHERE name LIKE '%checksum'; DROP TABLE idem_journal;"
    " DROP INDEX idem_outbox_of_record;"
    " PRAGMA user_version = 2";

class SqliteMetaDamage : public testing::Test {
 protected:
  void SetUp() override {
    const auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    for (int number = 1; number <= 3; ++number) {
      const Execute won = run(**store, number);
      highest_ = won.attempt.fence;
      ASSERT_TRUE(ask_and_wait(**store, a_complete(won)));
    }
    const AdoptRoutes routes{{{.methods = {"POST"}, .pattern = "/pay", .name = "pay"}}};
    ASSERT_TRUE(ask_and_wait(**store, routes));
  }

  std::string path() const { return folder_.file("idem.db"); }
  std::expected<std::unique_ptr<Store>, StoreError> open(bool migrate = false) {
    return open_sqlite(path(), test_settings(), {.migrate = migrate, .host = clock_.host()});
  }

  static Execute run(Store& store, int number) {
    Reserve verb = a_reserve(number);
    verb.generation = store.identity().generation;
    const auto outcome = ask_and_wait(store, verb);
    EXPECT_TRUE(outcome && is<Execute>(*outcome));
    return std::get<Execute>(*outcome);
  }

  /// The first value of the last row.
  std::string sql(const std::string& text) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    std::string first;
    char* message = nullptr;
    const auto keep = [](void* kept, int, char** values, char**) {
      *static_cast<std::string*>(kept) = values[0] != nullptr ? values[0] : "";
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), keep, &first, &message), SQLITE_OK) << message;
    sqlite3_free(message);
    sqlite3_close(db);
    return first;
  }

  /// `change` makes a start refuse the file, in a sentence with `part`; `back` undoes it.
  void expect_refused(const std::string& change, const std::string& part, const std::string& back) {
    sql(change);
    const auto refused = open();
    ASSERT_FALSE(refused) << change;
    EXPECT_EQ(refused.error().code, StoreError::Code::refused);
    for (const std::string& piece : {path(), part, std::string("bring back a copy")}) {
      EXPECT_NE(refused.error().detail.find(piece), std::string::npos) << refused.error().detail;
    }
    EXPECT_EQ(sql("SELECT count(*) FROM idem_slots"), "3") << "its records were left alone";
    sql(back);
    const auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    Reserve again = a_reserve(1, 2);
    again.generation = (*store)->identity().generation;
    const auto replayed = ask_and_wait(**store, again);
    ASSERT_TRUE(replayed && is<Replay>(*replayed));
  }

  TestClock clock_;
  TempFolder folder_;
  Fence highest_ = 0;
};

TEST_F(SqliteMetaDamage, S22_a_damaged_or_missing_value_refuses_the_start_and_names_itself) {
  sql("CREATE TABLE kept AS SELECT * FROM idem_meta");
  for (const std::string name :
       {"clock_store_ms", "clock_uptime_ms", "clock_boot_id", "fence_high_water", "generation",
        "secret", "store_id", "key_scope", "scope_source", "key_fields", "open",
        "digest_secrets_checksum", "route_names_checksum"}) {
    const std::string here = " WHERE name = '" + name + "'";
    const std::string back = "REPLACE INTO idem_meta SELECT * FROM kept";
    sql("DROP TABLE kept; CREATE TABLE kept AS SELECT * FROM idem_meta");
    expect_refused(
        "UPDATE idem_meta SET value = CASE typeof(value) WHEN 'integer'"
        " THEN value + (1 << 37) WHEN 'text' THEN value || 'x'"
        " ELSE zeroblob(length(value)) END" +
            here,
        "'" + name + "' in idem_meta does not match its checksum", back);
    sql("DROP TABLE kept; CREATE TABLE kept AS SELECT * FROM idem_meta");
    expect_refused("DELETE FROM idem_meta" + here, "'" + name + "' in idem_meta is missing", back);
  }
  sql("DROP TABLE kept; CREATE TABLE kept AS SELECT * FROM idem_meta");
  expect_refused("DELETE FROM idem_meta", "is missing", "INSERT INTO idem_meta SELECT * FROM kept");
}

TEST_F(SqliteMetaDamage, S22_so_do_damaged_names_of_secrets_and_routes) {
  expect_refused("UPDATE idem_digest_secrets SET id = id || 'x'", "idem_digest_secrets",
                 "UPDATE idem_digest_secrets SET id = substr(id, 1, length(id) - 1)");
  expect_refused("INSERT INTO idem_digest_secrets VALUES (9, 'x')", "idem_digest_secrets",
                 "DELETE FROM idem_digest_secrets WHERE generation = 9");
  expect_refused("UPDATE idem_route_names SET name = 'play'", "idem_route_names",
                 "UPDATE idem_route_names SET name = 'pay'");
}

// A statement that names a column which is called otherwise now would end the process.
TEST_F(SqliteMetaDamage, S22_a_flipped_bit_in_the_definition_of_a_table_ends_no_process) {
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string sound = content_of(path());
  int cases = 0;
  for (std::size_t from = 0; (from = sound.find("CREATE ", from)) != std::string::npos; ++from) {
    const auto is_text = [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); };
    const auto end =
        std::find_if_not(sound.begin() + static_cast<std::ptrdiff_t>(from), sound.end(), is_text) -
        sound.begin();
    for (std::size_t at = from + 7; at < static_cast<std::size_t>(end); at += 211) {
      SCOPED_TRACE(sound.substr(at, 20));
      std::string damaged = sound;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      put_content(path(), damaged);
      ++cases;
      const auto checked = sqlite::check_file(path(), {});
      EXPECT_TRUE(!checked || checked->found > 0);
      const auto looked = sqlite::look_at_file(path(), test_settings(), LookDepth::whole);
      EXPECT_TRUE(!looked || !looked->contradiction.empty());
      const auto store = open();
      EXPECT_FALSE(store);
      EXPECT_TRUE(store || content_of(path()) == damaged) << "it stays as it is";
      EXPECT_TRUE(!store && (store.error().detail.contains("the definition of ") ||
                             store.error().detail.contains("is corrupt")))
          << store.error().detail;
      if (cases % 8 != 0) continue;
      const std::string made = folder_.file("made.db");
      for (const char* const part : {"", "-wal", "-shm"}) fs::remove(made + part);
      const auto recovered = sqlite::recover_file({.from = path(), .to = made});
      if (!recovered) {
        EXPECT_TRUE(recovered.error().why.contains("ring back a copy")) << recovered.error().why;
        continue;
      }
      EXPECT_EQ(recovered->made.by_state[static_cast<std::size_t>(State::completed)], 3U);
    }
  }
  fmt::print("cases={}\n", cases);
  EXPECT_GT(cases, 25);
  put_content(path(), sound);
  EXPECT_TRUE(open());
}

// Of an upgrade the definitions before it count, and a service may have what it wants beside them.
TEST_F(SqliteMetaDamage, S22_definitions_are_judged_before_an_upgrade_and_those_of_others_never) {
  sql("CREATE INDEX evidence_by_source ON idem_evidence (source);"
      "CREATE TRIGGER slots_to_log AFTER INSERT ON idem_slots BEGIN SELECT 1; END;"
      "CREATE VIEW idem_open AS SELECT * FROM idem_running; CREATE TABLE idem_orders (id)");
  EXPECT_TRUE(open());
  sql("DELETE FROM idem_meta WHERE name = 'schema_checksum'");
  EXPECT_TRUE(open()) << "a file that never had the checksum";
  sql(sqlite_back_to_version_2);
  sql("DELETE FROM idem_meta WHERE name = 'schema_checksum';"
      "ALTER TABLE idem_slots RENAME COLUMN due_at TO duf_at");
  const auto upgraded = open(true);
  ASSERT_FALSE(upgraded);
  EXPECT_NE(upgraded.error().detail.find("the definition of idem_slots"), std::string::npos)
      << upgraded.error().detail;
  EXPECT_EQ(sql("PRAGMA user_version"), "2") << "it stays as it was";
  sql("ALTER TABLE idem_slots RENAME COLUMN duf_at TO due_at");
  EXPECT_TRUE(open(true));
}

TEST_F(SqliteMetaDamage, S22_an_older_file_gets_its_checksums_once) {
  sql(sqlite_back_to_version_2);
  EXPECT_TRUE(open(true));
  expect_refused("UPDATE idem_meta SET value = value + 1 WHERE name = 'clock_store_ms'",
                 "clock_store_ms",
                 "UPDATE idem_meta SET value = value - 1 WHERE name = 'clock_store_ms'");
}

// As `idem migrate` does: nobody says how records are named, so that is as recorded.
TEST_F(SqliteMetaDamage, S02_a_migration_alone_keeps_the_generation) {
  sql(std::string(sqlite_back_to_version_2) +
      "; UPDATE idem_meta SET value = 7 WHERE name = 'generation'");
  {
    const auto migrated = open_sqlite(path(), {}, {.migrate = true, .as_recorded = true});
    ASSERT_TRUE(migrated) << migrated.error().detail;
  }
  EXPECT_EQ(sql("SELECT value FROM idem_meta WHERE name = 'generation'"), "7");
  const auto store = open();
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_EQ((*store)->identity().generation, 7U);
}

TEST_F(SqliteMetaDamage, S01_no_fence_is_below_one_of_a_record) {
  sql(std::string(sqlite_back_to_version_2) +
      "; UPDATE idem_meta SET value = 0 WHERE name = 'fence_high_water'");
  const auto store = open(true);
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_GT(run(**store, 4).attempt.fence, highest_);
}

}  // namespace
}  // namespace idem::test
