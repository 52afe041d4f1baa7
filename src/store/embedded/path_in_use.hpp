#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace idem::embedded {

/// What was at a path when the store opened it. If it is moved, replaced or deleted afterwards, the
/// store goes on writing to the open file, which the next start will not find.
class PathInUse {
 public:
  PathInUse() = default;
  /// What is not there now is not missed later.
  explicit PathInUse(std::string path);
  /// `file`, open, is what is to be there, also if it is gone by now.
  PathInUse(std::string path, int file);

  /// Empty: it is still there. Otherwise a sentence. Costs a statx().
  std::string what_is_wrong() const;

 private:
  struct Which {
    std::uint32_t device_major = 0;
    std::uint32_t device_minor = 0;
    std::uint64_t inode = 0;
    bool operator==(const Which&) const = default;
  };
  static std::optional<Which> at(const std::string& path);
  static std::optional<Which> find(int folder, const char* path, int how);

  std::string path_;
  Which which_;
};

}  // namespace idem::embedded
