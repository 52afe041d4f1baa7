#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

/// The evidence log as the file keeps it: any other program that opens it can only add to it.
namespace idem::test {
namespace {

class SqliteAudit : public testing::Test {
 protected:
  void SetUp() override {
    const auto store = open_sqlite(path(), test_settings(), {.host = clock.host()});
    ASSERT_TRUE(store);
    for (int line = 0; line < 2; ++line) {
      ASSERT_TRUE(ask_and_wait(**store, CacheBust{key(1), 1, fmt::format("reason {}", line)}));
    }
  }
  void TearDown() override { sqlite3_close(db_); }

  std::string path() const { return folder.file("idem.db"); }

  void open_raw() {
    if (db_ != nullptr) return;
    EXPECT_EQ(sqlite3_open(path().c_str(), &db_), SQLITE_OK);
  }

  /// SQLite's error; empty when it was done.
  std::string run(const std::string& text) {
    open_raw();
    char* message = nullptr;
    sqlite3_exec(db_, text.c_str(), nullptr, nullptr, &message);
    std::string error = message != nullptr ? message : "";
    sqlite3_free(message);
    return error;
  }
  std::vector<std::string> reasons() {
    std::vector<std::string> found;
    open_raw();
    sqlite3_exec(
        db_, "SELECT reason FROM idem_evidence ORDER BY line",
        [](void* to, int, char** values, char**) {
          static_cast<std::vector<std::string>*>(to)->emplace_back(values[0]);
          return 0;
        },
        &found, nullptr);
    return found;
  }

  TestClock clock;
  TempFolder folder;
  sqlite3* db_ = nullptr;
};

TEST_F(SqliteAudit, V36_no_statement_changes_drops_or_replaces_a_line) {
  const std::vector<std::string> both{"reason 0", "reason 1"};
  ASSERT_EQ(reasons(), both);
  const std::string values =
      "id, 1, 'me', '', 'nothing happened', 1, 1, 1, 1, 1 FROM idem_evidence";
  const std::string columns =
      " INTO idem_evidence (line, id, fence, source, evidence, reason, before_state, after_state,"
      " applied, observed_at, recorded_at) SELECT line, " +
      values;
  for (const std::string& statement :
       {std::string("UPDATE idem_evidence SET reason = 'nothing happened'"),
        std::string("UPDATE idem_evidence SET line = line + 10"),
        std::string("UPDATE OR REPLACE idem_evidence SET line = 2 WHERE line = 1"),
        std::string("DELETE FROM idem_evidence"),
        std::string("DELETE FROM idem_evidence WHERE line = 1"), "INSERT OR REPLACE" + columns,
        "REPLACE" + columns + " WHERE line = 2"}) {
    EXPECT_EQ(run(statement), "evidence is append-only") << statement;
    EXPECT_EQ(reasons(), both) << statement;
  }
}

TEST_F(SqliteAudit, V36_more_lines_are_still_added) {
  const auto store = open_sqlite(path(), test_settings(), {.host = clock.host()});
  ASSERT_TRUE(store);
  ASSERT_TRUE(ask_and_wait(**store, CacheBust{key(1), 1, "reason 2"}));
  EXPECT_EQ(ask_and_wait(**store, ReadEvidence{key(1)})->size(), 3U);
}

}  // namespace
}  // namespace idem::test
