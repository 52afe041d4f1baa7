#pragma once

#include "store/embedded/path_in_use.hpp"

#include <string>

struct sqlite3;

namespace idem::sqlite {

/// The database file and its write-ahead log as they were when they were opened.
class OpenFile {
 public:
  /// `path`: as the store was asked to open it; empty: as SQLite names it. `db` has written.
  OpenFile(sqlite3* db, std::string path);

  /// Empty: both files are still at their paths. Otherwise a sentence. Costs two statx() calls.
  std::string what_is_wrong() const;

  /// The log's path.
  const std::string& log() const noexcept { return log_path_; }

 private:
  std::string log_path_;
  embedded::PathInUse file_;
  embedded::PathInUse log_;
};

}  // namespace idem::sqlite
