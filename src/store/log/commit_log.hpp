#pragma once

#include "store/embedded/path_in_use.hpp"
#include "store/log/numbered_files.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace idem::segments {

/// Every commit of the store, one frame each, in files of some 64 MiB that are used again. A start
/// repeats what the index and the files of versions had not on the disk. Used by one thread.
class CommitLog {
 public:
  struct Frame {
    std::uint64_t number = 0;  ///< Frames are numbered without a gap.
    std::string_view versions;
    std::string_view rest;
  };

  CommitLog(std::string folder, std::uint64_t file_bytes)
      : files_(std::move(folder), ".commits"), file_bytes_(file_bytes) {}

  std::expected<void, std::string> open() { return files_.open(); }
  /// Shows all frames, from the oldest to the last that was written whole; must come once, before
  /// append(). A frame that a crash cut is the end. An error, a sentence: bytes in the middle are
  /// damaged, or files are missing.
  std::expected<void, std::string> replay(const std::function<void(const Frame&)>& see);

  /// True if the next frame is the first one of a file.
  bool begins_file() const noexcept { return end_ == 0 || end_ >= file_bytes_; }
  std::uint64_t last_number() const noexcept { return number_; }
  /// Durable when it returns.
  void append(std::string_view versions, std::string_view rest);
  /// Empty: a start finds what was appended. Otherwise a sentence.
  std::string what_is_lost() const { return in_use_.what_is_wrong(); }
  /// No start needs the frames up to this number.
  void allow_reuse(std::uint64_t to) noexcept { reusable_to_ = to; }

 private:
  void begin_file();

  NumberedFiles files_;
  embedded::PathInUse in_use_;  ///< The current one.
  std::uint64_t file_bytes_;    ///< A file with so many is full; earlier ones may have others.
  std::map<std::uint32_t, std::uint64_t> last_in_;  ///< The last frame of each file before.
  std::uint32_t current_ = 0;                       ///< 0: there is none yet.
  std::uint64_t end_ = 0;                           ///< Of what was written in the current one.
  std::uint64_t room_ = 0;                          ///< The current one's length.
  std::uint64_t number_ = 0;                        ///< Of the last frame.
  std::uint64_t reusable_to_ = 0;
};

}  // namespace idem::segments
