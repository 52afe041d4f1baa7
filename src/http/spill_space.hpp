#pragma once

#include "loop/offload.hpp"

#include <idem/limits.hpp>

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace idem::http {

class SpillFile;

/// They copy into the page cache at gigabytes a second; on a disk that hangs, more of them would
/// hang as well.
inline constexpr unsigned spill_threads = 2;

/// The directory for request bodies that are too large for memory, and how many bytes are in it.
/// Its files are made, written and closed on threads of their own: on a disk that is slow or hangs
/// each of these calls may block, and a loop may not. Safe from any thread.
class SpillSpace {
 public:
  /// The error is a sentence: no file can be written in `directory`.
  static std::expected<std::unique_ptr<SpillSpace>, std::string> open(
      std::string directory, std::uint64_t bytes_max = limits::spill_bytes_max);

  /// A new, empty file without a name, so that it goes with this process. None: the directory has
  /// no room for one now. Blocks.
  std::shared_ptr<SpillFile> make_file();

  /// Where the calls that block are to run.
  Offload& threads() noexcept { return threads_; }

 private:
  friend class SpillFile;
  SpillSpace(std::string directory, std::uint64_t bytes_max)
      : directory_(std::move(directory)),
        bytes_max_(bytes_max),
        threads_("idem-spill", spill_threads) {}
  bool take(std::size_t bytes) noexcept;
  void give(std::size_t bytes) noexcept;

  std::string directory_;
  std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> taken_{0};
  Offload threads_;
};

/// One unlinked file: written once, then mapped. One thread at a time; the space must outlive it.
class SpillFile {
 public:
  /// Returns at once: a thread of the space closes the file.
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Appends all of `bytes`. Blocks for a copy into the page cache, which is a memcpy unless the
  /// kernel slows down a writer that is faster than the disk. False: the disk is full or nearly so,
  /// or a quota or the space's own bound is reached; the file is then of no further use.
  bool append(std::string_view bytes) noexcept;
  /// Ends the writing and makes bytes() readable, and resident for now. Blocks. False: the kernel
  /// would not map it. Bytes that were evicted and cannot be read back end the process (SIGBUS).
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
