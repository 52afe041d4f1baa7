#include "store/sqlite/connection.hpp"

#include "core/bytes/last_words.hpp"
#include "store/sqlite/failure.hpp"

#include <cstdlib>

namespace idem::sqlite {

namespace {

/// "; Permission denied; WHAT TO DO", or nothing.
std::string advice_on_medium(sqlite3* db, const std::string& path) {
  const int error = error_of(db);
  return error == 0 ? std::string() : "; " + words_on(error, path, path);
}

}  // namespace

void fail_closed(sqlite3* db, std::string_view doing) noexcept {
  const char* path = sqlite3_db_filename(db, "main");
  say_last_words(std::string("idem: sqlite store failed path=") + (path ? path : "?") + " doing=" +
                 std::string(doing) + " code=" + std::to_string(sqlite3_extended_errcode(db)) +
                 ": " + sqlite3_errmsg(db) + advice_on_medium(db, path ? path : "") + "; stopping");
  std::abort();
}

std::optional<std::string> text_value(sqlite3* db, const char* sql) {
  std::string value;
  const auto keep = [](void* out, int columns, char** values, char**) {
    if (columns > 0 && values[0] != nullptr) *static_cast<std::string*>(out) = values[0];
    return 0;
  };
  if (sqlite3_exec(db, sql, keep, &value, nullptr) != SQLITE_OK) return std::nullopt;
  return value;
}

Statement::Statement(sqlite3* db, std::string_view sql) : db_(db) {
  if (sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &statement_, nullptr) != SQLITE_OK) {
    fail_closed(db, sql);
  }
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail_closed(db_, sqlite3_sql(statement_));
  sqlite3_reset(statement_);
  return false;
}

char Statement::type(int at) {
  switch (sqlite3_column_type(statement_, at)) {
    case SQLITE_INTEGER:
      return integer_type;
    case SQLITE_TEXT:
      return text_type;
    case SQLITE_BLOB:
      return blob_type;
    default:
      return other_type;
  }
}

std::string_view Statement::bytes(int at) {
  // The pointer must be read first: the size then is that of the same encoding.
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, at));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, at));
  return data ? std::string_view(data, size) : std::string_view();
}

}  // namespace idem::sqlite
