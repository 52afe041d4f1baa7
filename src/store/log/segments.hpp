#pragma once

#include "store/log/database.hpp"

#include <map>
#include <optional>
#include <set>

namespace idem::segments {

/// How many bytes of each file of versions are present ones. A file without any is deleted.
class Segments {
 public:
  explicit Segments(Database& db);

  void add(std::uint32_t segment, std::uint32_t bytes);
  void drop(std::uint32_t segment, std::uint32_t bytes);
  /// All that was present in it has been copied.
  void has_no_more(std::uint32_t segment);
  /// Writes what changed, and deletes files that earlier transactions emptied; before a commit.
  void flush();

  /// Some file may have become worth to be copied together since sparsest().
  bool has_changed_much() const noexcept { return dropped_ >= dropped_much_; }
  /// Of the full files that are present to less than two thirds, the one with the least. Never one
  /// of `but`.
  std::optional<std::uint32_t> sparsest(const std::set<std::uint32_t>& but);
  /// flush() would delete a file.
  bool has_empty() const noexcept {
    return !emptied_.empty() && *emptied_.begin() < db_.current_file();
  }

 private:
  Database& db_;
  std::map<std::uint32_t, std::uint64_t> present_;
  std::set<std::uint32_t> changed_;
  std::set<std::uint32_t> emptied_;
  std::set<std::uint32_t> unknown_;  ///< Counted as if all of it were present.
  std::uint64_t dropped_much_;
  std::uint64_t dropped_;  ///< Bytes since the last look for the sparsest.
};

}  // namespace idem::segments
