#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sqlite3.h>

namespace idem::sqlite {

/// The rows of a query over a file that may be damaged: a failure ends them, and not the process.
class TolerantRows {
 public:
  TolerantRows(sqlite3* db, const char* sql) : db_(db) {
    if (sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) != SQLITE_OK) note_failure();
  }
  ~TolerantRows() { sqlite3_finalize(statement_); }
  TolerantRows(const TolerantRows&) = delete;
  TolerantRows& operator=(const TolerantRows&) = delete;

  /// False: there are no more, or failure() says why not.
  bool step() {
    if (!failure_.empty()) return false;
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) note_failure();
    return code == SQLITE_ROW;
  }
  const std::string& failure() const noexcept { return failure_; }

  bool is_null(int at) { return sqlite3_column_type(statement_, at) == SQLITE_NULL; }
  std::int64_t integer(int at) { return sqlite3_column_int64(statement_, at); }
  /// Valid until the next step.
  std::string_view bytes(int at) {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, at));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, at));
    return data != nullptr ? std::string_view(data, size) : std::string_view();
  }

  /// Inserts the current row into a table of the same columns elsewhere.
  bool copy_to(sqlite3* other, const std::string& table) {
    const int columns = sqlite3_column_count(statement_);
    std::string sql = "INSERT INTO " + table + " VALUES (";
    for (int at = 0; at < columns; ++at) sql += at == 0 ? "?" : ", ?";
    sqlite3_stmt* insert = nullptr;
    bool done = sqlite3_prepare_v2(other, (sql + ")").c_str(), -1, &insert, nullptr) == SQLITE_OK;
    for (int at = 0; at < columns && done; ++at) {
      done = sqlite3_bind_value(insert, at + 1, sqlite3_column_value(statement_, at)) == SQLITE_OK;
    }
    done = done && sqlite3_step(insert) == SQLITE_DONE;
    sqlite3_finalize(insert);
    return done;
  }

 private:
  void note_failure() { failure_ = sqlite3_errmsg(db_); }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  std::string failure_;
};

}  // namespace idem::sqlite
