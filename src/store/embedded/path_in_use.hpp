#pragma once

#include <cstdint>
#include <string>

namespace idem::embedded {

/// What was at a path when the store opened it. If it is moved, replaced or deleted afterwards, the
/// store goes on writing to the open file, which the next start will not find.
class PathInUse {
 public:
  PathInUse() = default;
  /// What is not there now is not missed later.
  explicit PathInUse(std::string path);

  /// Empty: it is still there. Otherwise a sentence. Costs a stat().
  std::string what_is_wrong() const;

 private:
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

}  // namespace idem::embedded
