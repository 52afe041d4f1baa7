#include "store/sqlite/migrations.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/upgrading.hpp"

#include <sqlite3.h>

/// Files of older schema versions, with work in them.
namespace idem::test {
namespace {

constexpr const char* back_to_version_1 =
    "ALTER TABLE idem_outbox RENAME COLUMN no_call_in_flight_since TO quiet_since;"
    "ALTER TABLE idem_flows RENAME COLUMN no_call_in_flight_since TO quiet_since;"
    "ALTER TABLE idem_outbox RENAME COLUMN claim TO fence;"
    "ALTER TABLE idem_meta DROP COLUMN checksum; ALTER TABLE idem_evidence DROP COLUMN checksum;"
    "DROP TABLE idem_journal; DROP INDEX idem_outbox_of_record;"
    "PRAGMA user_version = 1";

constexpr const char* all_objects =
    "SELECT group_concat(type || ' ' || name || ' ' || sql, char(10)) FROM"
    " (SELECT * FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name)";

class SqliteUpgrade : public testing::Test {
 protected:
  std::string path(const std::string& name = "idem.db") const { return folder_.file(name); }

  std::expected<std::unique_ptr<Store>, StoreError> open(bool migrate,
                                                         const std::string& name = "idem.db") {
    return open_sqlite(path(name), test_settings(), {.migrate = migrate});
  }
  std::unique_ptr<Store> opened(bool migrate, const std::string& name = "idem.db") {
    auto store = open(migrate, name);
    if (store) return std::move(*store);
    ADD_FAILURE() << store.error().detail;
    std::abort();
  }

  /// The first value of the last statement.
  std::string sql(const std::string& text, const std::string& name = "idem.db") {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path(name).c_str(), &db), SQLITE_OK);
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

  TempFolder folder_;
};

TEST_F(SqliteUpgrade, S02_an_older_file_with_work_in_it_becomes_what_a_new_one_is) {
  WorkLeft left;
  {
    const auto store = opened(false);
    left = leave_work(*store);
    EXPECT_EQ(claim_message(*store).size(), 1u);
  }
  opened(false, "new.db");
  sql(std::string(sqlite::migrations().front().sql), "first.db");
  sql(back_to_version_1);
  ASSERT_EQ(sql(all_objects), sql(all_objects, "first.db")) << "it has the form of version 1";
  const auto refused = open(false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("--migrate"), std::string::npos);
  {
    const auto store = opened(true);
    expect_work_ends(*store, left);
  }
  EXPECT_EQ(sql(all_objects), sql(all_objects, "new.db"));
}

TEST_F(SqliteUpgrade, S02_a_services_broken_view_or_trigger_stops_it_and_is_named) {
  for (const std::string broken :
       {"VIEW theirs AS SELECT * FROM gone",
        "TRIGGER theirs AFTER INSERT ON paid BEGIN INSERT INTO gone VALUES (1); END"}) {
    const std::string name = broken.substr(0, broken.find(' ')) + ".db";
    opened(false, name);
    sql(back_to_version_1, name);
    sql("CREATE TABLE paid (id); CREATE " + broken, name);
    const std::string before = sql(all_objects, name);
    const auto refused = open(true, name);
    ASSERT_FALSE(refused) << broken;
    EXPECT_EQ(refused.error().code, StoreError::Code::refused);
    for (const std::string& part :
         {path(name), std::string("from schema version 1 to "), std::string("theirs"),
          std::string("no such table: main.gone"), std::string("repair or drop"),
          std::string("the store is unchanged")}) {
      EXPECT_NE(refused.error().detail.find(part), std::string::npos) << refused.error().detail;
    }
    EXPECT_EQ(sql(all_objects, name), before);
    EXPECT_EQ(sql("PRAGMA user_version", name), "1");
    sql("DROP " + broken.substr(0, broken.find("theirs")) + "theirs", name);
    opened(true, name);
  }
}

}  // namespace
}  // namespace idem::test
