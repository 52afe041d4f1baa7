#pragma once

#include <idem/limits.hpp>

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace idem::http {

class SpillFile;

/// The directory that takes request bodies too large for memory, and the count of what lies there.
/// Safe from any thread.
class SpillSpace {
 public:
  /// Refused with a sentence when no file can be made in `directory`.
  static std::expected<std::unique_ptr<SpillSpace>, std::string> open(
      std::string directory, std::uint64_t bytes_max = limits::spill_bytes_max);

  /// A new, empty file without a name: whatever ends this process takes it away. None: the
  /// directory does not take one now.
  std::unique_ptr<SpillFile> make_file();

 private:
  friend class SpillFile;
  SpillSpace(std::string directory, std::uint64_t bytes_max)
      : directory_(std::move(directory)), bytes_max_(bytes_max) {}
  bool take(std::size_t bytes) noexcept;
  void give(std::size_t bytes) noexcept;

  std::string directory_;
  std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> taken_{0};
};

/// One unlinked file: written once, then mapped. One thread at a time; the space must outlive it.
class SpillFile {
 public:
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Appends all of `bytes`. Blocks for a copy into the page cache, which is a memcpy unless the
  /// kernel holds back a writer that dirties memory faster than the disk takes it. False: the disk
  /// is full or nearly so, a quota or the space's own bound is reached; the file is of no further
  /// use.
  bool append(std::string_view bytes) noexcept;
  /// Ends the writing and makes bytes() readable. False: the kernel would not map it. Bytes that
  /// were evicted and cannot be read back end the process (SIGBUS), which is a crash like another.
  bool map() noexcept;
  std::string_view bytes() const noexcept { return {mapping_, mapping_ ? size_ : 0}; }

 private:
  friend class SpillSpace;
  SpillFile(SpillSpace& space, int fd) : space_(space), fd_(fd) {}

  SpillSpace& space_;
  int fd_;
  std::size_t size_ = 0;
  const char* mapping_ = nullptr;
};

}  // namespace idem::http
