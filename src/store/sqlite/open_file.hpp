#pragma once

#include <cstdint>
#include <string>

struct sqlite3;

namespace idem::sqlite {

/// The database file and its write-ahead log as they were when they were opened. If they are moved,
/// replaced or deleted afterwards, SQLite goes on writing to the open files, which the next start
/// will not find.
class OpenFile {
 public:
  /// `path`: as the store was asked to open it; empty: as SQLite names it. `db` has written.
  OpenFile(sqlite3* db, std::string path);

  /// Empty: both files are still at their paths. Otherwise a sentence. Costs two stat() calls.
  std::string what_is_wrong() const;

  /// The log's path.
  const std::string& log() const noexcept { return log_.path; }

 private:
  struct Named {
    std::string path;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;

    explicit Named(std::string where);
    bool is_there() const;
  };
  Named file_;
  Named log_;
};

}  // namespace idem::sqlite
