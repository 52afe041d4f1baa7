#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/changed_by_hand.hpp"

#include <sqlite3.h>

/// Lines of a journal in a file that was changed from outside.
namespace idem::test {
namespace {

class SqliteJournal : public testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    auto store = open_sqlite(folder_.file("idem.db"), test_settings());
    if (store) return std::move(*store);
    ADD_FAILURE() << store.error().detail;
    std::abort();
  }
  /// Whether SQLite allows it.
  bool sql(const std::string& text) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(folder_.file("idem.db").c_str(), &db), SQLITE_OK);
    const bool is_done = change_by_hand(db, text) == SQLITE_OK;
    sqlite3_close(db);
    return is_done;
  }
  void leave_lines() {
    const auto store = open();
    for (std::uint64_t n = 0; n < 3; ++n) {
      EXPECT_TRUE(ask_and_wait(*store, AppendLine{"audit", n, "line"})->appended);
      EXPECT_TRUE(ask_and_wait(*store, AppendLine{"jobs", n, "line"})->appended);
    }
  }
  std::vector<bool> damaged() {
    const auto store = open();
    std::vector<bool> found;
    const auto read = ask_and_wait(*store, ReadLines{"audit"});
    EXPECT_TRUE(read);
    if (!read) return found;
    for (const JournalLine& line : read->lines) found.push_back(line.is_damaged);
    return found;
  }

  TempFolder folder_;
};

TEST_F(SqliteJournal, S19_statements_change_no_line_by_mistake) {
  leave_lines();
  EXPECT_FALSE(sql("UPDATE idem_journal SET line = x'00'"));
  EXPECT_FALSE(sql("DELETE FROM idem_journal WHERE name = 'audit'"));
  EXPECT_FALSE(sql("REPLACE INTO idem_journal VALUES ('audit', 1, 1, x'00', 1, 1)"));
  EXPECT_TRUE(sql("DELETE FROM idem_journal WHERE name = 'jobs'"));
  EXPECT_EQ(damaged(), std::vector<bool>(3, false));
}

TEST_F(SqliteJournal, S22_a_changed_or_moved_line_is_shown_as_damaged) {
  leave_lines();
  ASSERT_TRUE(
      sql("DROP TRIGGER journal_is_never_changed;"
          "UPDATE idem_journal SET line = x'00' WHERE name = 'audit' AND seq = 2"));
  EXPECT_EQ(damaged(), (std::vector<bool>{false, true, false}));
  ASSERT_TRUE(
      sql("DROP TRIGGER journal_is_never_changed;"
          "UPDATE idem_journal SET at = at + 1 WHERE name = 'audit' AND seq = 3"));
  EXPECT_EQ(damaged(), (std::vector<bool>{false, true, true}));
  ASSERT_TRUE(
      sql("DROP TRIGGER audit_is_never_dropped; DROP TRIGGER journal_is_never_changed;"
          "DELETE FROM idem_journal WHERE name = 'audit';"
          "UPDATE idem_journal SET name = 'audit'"));
  EXPECT_EQ(damaged(), std::vector<bool>(3, true));
}

}  // namespace
}  // namespace idem::test
