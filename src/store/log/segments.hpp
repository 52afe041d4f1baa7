#pragma once

#include "store/log/database.hpp"

#include <map>
#include <set>

namespace idem::segments {

/// How many bytes of each file of versions are present ones. A file without any is deleted.
class Segments {
 public:
  explicit Segments(Database& db);

  void add(std::uint32_t segment, std::uint32_t bytes);
  void drop(std::uint32_t segment, std::uint32_t bytes);
  /// Writes what changed, and deletes files that earlier transactions emptied; before a commit.
  void flush();

 private:
  void drop_empty();

  Database& db_;
  std::map<std::uint32_t, std::uint64_t> present_;
  std::set<std::uint32_t> changed_;
  std::uint32_t looked_at_ = 0;  ///< The current file at the last look.
};

}  // namespace idem::segments
