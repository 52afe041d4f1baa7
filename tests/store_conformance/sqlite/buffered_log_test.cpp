#include "store/sqlite/buffered_log.hpp"
#include "store/sqlite/connection.hpp"
#include "store_conformance/harness.hpp"

#include <filesystem>

/// The log behind a buffer is the log: what is read, also in the middle of a transaction, is what
/// was written.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

sqlite::Connection open_buffered(const fs::path& path) {
  sqlite3* db = nullptr;
  const std::string vfs = sqlite::buffered_log_vfs("");
  const int code =
      sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs.c_str());
  sqlite::Connection connection(db);
  EXPECT_EQ(code, SQLITE_OK);
  // Ten pages of cache, so that a transaction spills into the log and reads back from it.
  EXPECT_EQ(sqlite3_exec(db,
                         "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
                         "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                         "PRAGMA cache_size=10;"
                         "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, body BLOB)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  return connection;
}

void run_sql(sqlite3* db, std::string_view sql) { sqlite::Statement(db, sql).run(); }

std::string one(sqlite3* db, std::string_view sql) {
  sqlite::Statement statement(db, sql);
  EXPECT_TRUE(statement.step());
  return std::string(statement.bytes(0));
}

TEST(SqliteBufferedLog, a_transaction_reads_what_it_spilled) {
  const TempFolder folder;
  const auto connection = open_buffered(folder.file("a.db"));
  sqlite3* db = connection.get();
  run_sql(db, "BEGIN");
  run_sql(db,
          "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)"
          " INSERT INTO t SELECT n, zeroblob(500) FROM c");
  // Pages that are in the log already are written a second time, in its middle.
  run_sql(db, "UPDATE t SET body = CAST(printf('%0500d', n) AS BLOB)");
  EXPECT_EQ(one(db, "SELECT count(*) FROM t WHERE CAST(body AS INTEGER) = n"), "2000");
  run_sql(db, "COMMIT");
  EXPECT_EQ(one(db, "SELECT count(*) FROM t WHERE CAST(body AS INTEGER) = n"), "2000");
  EXPECT_EQ(one(db, "PRAGMA integrity_check"), "ok");
}

TEST(SqliteBufferedLog, committed_changes_are_in_the_files) {
  const TempFolder folder;
  const auto connection = open_buffered(folder.file("a.db"));
  sqlite3* db = connection.get();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      run_sql(db, "BEGIN");
      run_sql(db, "INSERT INTO t (body) VALUES (zeroblob(3000))");
      run_sql(db, "COMMIT");
    }
    run_sql(db, "BEGIN");
    run_sql(db, "INSERT INTO t (body) VALUES (zeroblob(100000))");  // Of it nothing may be found.
    // The file after a crash at this moment.
    fs::copy_file(folder.file("a.db"), folder.file("b.db"));
    fs::copy_file(folder.file("a.db-wal"), folder.file("b.db-wal"));
    run_sql(db, "ROLLBACK");
    {
      const auto left = open_buffered(folder.file("b.db"));
      EXPECT_EQ(one(left.get(), "SELECT count(*) FROM t"), std::to_string(50 * (round + 1)));
      EXPECT_EQ(one(left.get(), "PRAGMA integrity_check"), "ok");
    }
    fs::remove(folder.file("b.db"));
    fs::remove(folder.file("b.db-wal"));
    // The next round begins the log anew, over the old one.
    EXPECT_EQ(sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr),
              SQLITE_OK);
  }
}

TEST(SqliteBufferedLog, is_registered_once_for_each_base) {
  EXPECT_EQ(sqlite::buffered_log_vfs(""), sqlite::buffered_log_vfs(""));
  EXPECT_EQ(sqlite::buffered_log_vfs(""), sqlite::buffered_log_vfs("unix"));
  EXPECT_NE(sqlite::buffered_log_vfs("unix"), sqlite::buffered_log_vfs("unix-none"));
}

}  // namespace
}  // namespace idem::test
