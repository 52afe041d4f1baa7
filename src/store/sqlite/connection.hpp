#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sqlite3.h>

/// A thin layer over SQLite: ownership, typed binding, and one reaction to every failure.
namespace idem::sqlite {

/// One line on stderr, then abort: after a failed write or fsync the file's content is unknown, and
/// a second fsync may succeed wrongly (the kernel drops the dirty pages).
[[noreturn]] void fail_closed(sqlite3* db, std::string_view doing) noexcept;

struct CloseDatabase {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
using Connection = std::unique_ptr<sqlite3, CloseDatabase>;

/// The first column of the last row, empty without one or if it is NULL. None: SQLite failed.
std::optional<std::string> text_value(sqlite3* db, const char* sql);

/// A prepared statement, kept for as long as its connection. Texts and blobs are bound without a
/// copy, so they must outlive the step.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql);
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int at, std::int64_t value) { check(sqlite3_bind_int64(statement_, at, value)); }
  void bind_text(int at, std::string_view text) {
    check(sqlite3_bind_text64(statement_, at, text.data() ? text.data() : "", text.size(),
                              SQLITE_STATIC, SQLITE_UTF8));
  }
  void bind_blob(int at, std::string_view bytes) {
    check(sqlite3_bind_blob64(statement_, at, bytes.data() ? bytes.data() : "", bytes.size(),
                              SQLITE_STATIC));
  }
  void bind_bytes(int at, std::span<const std::uint8_t> bytes) {
    check(sqlite3_bind_blob64(statement_, at, bytes.data(), bytes.size(), SQLITE_STATIC));
  }
  void bind_null(int at) { check(sqlite3_bind_null(statement_, at)); }

  /// True: a row. False: done, and reset for the next use. Every failure ends in fail_closed().
  bool step();
  /// For a statement without rows.
  void run() {
    while (step()) {
    }
  }
  void reset() noexcept { sqlite3_reset(statement_); }

  /// The type of a value, as a letter.
  static constexpr char integer_type = 'i';
  static constexpr char text_type = 't';
  static constexpr char blob_type = 'b';
  static constexpr char other_type = 'o';
  /// Must come before the value is read, as reading it may convert it.
  char type(int at);
  int columns() { return sqlite3_column_count(statement_); }

  bool is_null(int at) { return sqlite3_column_type(statement_, at) == SQLITE_NULL; }
  std::int64_t integer(int at) { return sqlite3_column_int64(statement_, at); }
  /// Valid until the next step or reset.
  std::string_view bytes(int at);

 private:
  void check(int code) {
    if (code != SQLITE_OK) fail_closed(db_, "binding");
  }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

/// Resets a statement whose rows are not read to the end.
class RowsEnd {
 public:
  explicit RowsEnd(Statement& statement) : statement_(statement) {}
  ~RowsEnd() { statement_.reset(); }
  RowsEnd(const RowsEnd&) = delete;
  RowsEnd& operator=(const RowsEnd&) = delete;

 private:
  Statement& statement_;
};

}  // namespace idem::sqlite
