#pragma once

#include "store/file_access.hpp"

#include <optional>
#include <string>

#include <sqlite3.h>

/// What a failure of SQLite means, and what to do about it.
namespace idem::sqlite {

struct SqliteFailure {
  enum class Kind : std::uint8_t {
    busy,      ///< Another process has it.
    access,    ///< A right, a mount, a limit, a lock, or the room on the disk.
    no_store,  ///< It is no database.
    corrupt,
    other,
  };
  Kind kind = Kind::other;
  std::string why;  ///< A sentence that begins with `path`.
};

/// The errno of the last call on `db`, if the medium failed it; 0: it did not, or nobody knows.
int error_of(sqlite3* db) noexcept;

/// Of the last call on `db`, which has the database at `path`.
SqliteFailure failure_of(sqlite3* db, const std::string& path, FileUse use);

/// Likewise; none: that call did not fail.
std::optional<SqliteFailure> last_failure(sqlite3* db, const std::string& path, FileUse use);

/// Why this process may not use the database at `path`, or its log. `path` is no link.
std::optional<std::string> why_no_access(const std::string& path, FileUse use);

}  // namespace idem::sqlite
