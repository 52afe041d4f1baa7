#pragma once

#include <cstdint>
#include <string>

struct sqlite3;

namespace idem::sqlite {

/// The database file and its write-ahead log, as they lay at their paths when they were opened.
/// Somebody may move, replace or delete them since: SQLite goes on writing to what it has open,
/// which the next start will not find.
class OpenFile {
 public:
  /// `path` is what the store was asked to open; empty: as SQLite names it. `db` has written.
  OpenFile(sqlite3* db, std::string path);

  /// Empty: both still lie where they lay. Otherwise a sentence. Two looks at a name.
  std::string what_is_wrong() const;

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
