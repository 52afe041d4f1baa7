#include "store/sqlite/own_connection.hpp"

#include "store/sqlite/connection.hpp"

#include <idem/limits.hpp>

namespace idem::sqlite {
namespace {

bool has_running_statement(sqlite3* db) {
  for (sqlite3_stmt* one = sqlite3_next_stmt(db, nullptr); one != nullptr;
       one = sqlite3_next_stmt(db, one)) {
    if (sqlite3_stmt_busy(one) != 0) return true;
  }
  return false;
}

/// A question, its only right answer, and the complaint about any other.
struct Demand {
  const char* question;
  const char* answer;
  const char* sentence;
};

constexpr Demand demands[] = {
    {"SELECT count(*) FROM pragma_database_list WHERE name NOT IN ('main', 'temp')", "0",
     "other databases are attached: a commit over several files is not one"},
    {"SELECT count(*) FROM temp.sqlite_schema WHERE name LIKE 'idem\\_%' ESCAPE '\\'"
     " OR type = 'trigger'",
     "0", "temporary tables or triggers hide those of the store"},
    {"PRAGMA encoding", "UTF-8", "the database is not in UTF-8"},
    {"PRAGMA query_only", "0", "PRAGMA query_only is on"},
    {"PRAGMA main.locking_mode", "exclusive",
     "it is not locked for one process: set PRAGMA locking_mode = EXCLUSIVE first of all"},
    {"PRAGMA main.journal_mode", "wal",
     "it keeps no write-ahead log: set PRAGMA journal_mode = WAL"},
    {"SELECT synchronous >= 2 FROM pragma_synchronous", "1",
     "it may forget its last commits: set PRAGMA synchronous = FULL"},
    {"PRAGMA wal_autocheckpoint", "0",
     "checkpoints are the store's: set PRAGMA wal_autocheckpoint = 0"},
    {"PRAGMA foreign_keys", "1", "references are not checked: set PRAGMA foreign_keys = ON"},
};

}  // namespace

std::optional<std::string> why_refused(sqlite3* db) {
  const char* const path = sqlite3_db_filename(db, "main");
  if (path == nullptr || *path == '\0') return "it is no database in a file";
  if (sqlite3_uri_boolean(path, "nolock", 0) != 0 || sqlite3_uri_boolean(path, "immutable", 0)) {
    return "it was opened without locks";
  }
  if (sqlite3_get_autocommit(db) == 0) return "a transaction is open on it";
  if (has_running_statement(db)) return "a statement on it is in the middle of its rows";
  if (sqlite3_db_readonly(db, "main") == 1) return "it cannot be written";
  const int length = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1);
  if (length < limits::sqlite_length_min) {
    return "its SQLITE_LIMIT_LENGTH is " + std::to_string(length) + ", and the store needs " +
           std::to_string(limits::sqlite_length_min);
  }
  for (const auto& [question, answer, sentence] : demands) {
    const auto seen = text_value(db, question);
    if (!seen) return std::string(question) + ": " + sqlite3_errmsg(db);
    if (*seen != answer) return sentence;
  }
  return std::nullopt;
}

bool is_open_to_others(sqlite3* db) {
  sqlite3_vfs* vfs = nullptr;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(sqlite3_db_filename(db, "main"), &raw,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                                     vfs == nullptr ? nullptr : vfs->zName);
  const Connection other(raw);
  return opened == SQLITE_OK && text_value(raw, "SELECT count(*) FROM sqlite_schema").has_value();
}

}  // namespace idem::sqlite
