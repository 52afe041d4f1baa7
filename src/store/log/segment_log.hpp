#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace idem::segments {

/// Every commit of the store, one frame each, in files of some 64 MiB that are only appended to:
/// the versions of records that the commit wrote, which stay readable at their places, and its
/// changes of the index, which a start repeats if the index had not written them to its files. A
/// place is the number of a file and an offset in it, so places grow. Used by one thread.
///
/// A failed write or sync ends the process: after it nobody knows what the file holds.
class SegmentLog {
 public:
  struct Frame {
    std::uint64_t at = 0;      ///< The frame's own place.
    std::uint64_t number = 0;  ///< Frames are numbered without a gap.
    std::string_view versions;
    std::string_view index;
  };

  /// `folder` exists. The error is a sentence.
  static std::expected<std::unique_ptr<SegmentLog>, std::string> open(std::string folder,
                                                                      std::uint64_t segment_bytes);
  ~SegmentLog();
  SegmentLog(const SegmentLog&) = delete;
  SegmentLog& operator=(const SegmentLog&) = delete;

  /// Shows the frames from the one of this place and number on (0: from the first one), to the end
  /// of what was written whole; must come once, before append(). A frame that a crash cut is the
  /// end. An error: bytes in the middle are damaged, or files are missing.
  std::expected<void, std::string> replay(std::uint64_t from, std::uint64_t number,
                                          const std::function<void(const Frame&)>& see);

  /// The place of the first version of the next frame.
  std::uint64_t next() const noexcept;
  /// Where the next frame begins, and its number.
  std::uint64_t next_frame() const noexcept;
  std::uint64_t next_number() const noexcept { return number_ + 1; }
  std::uint64_t last_number() const noexcept { return number_; }
  /// Durable when it returns.
  void append(std::string_view versions, std::string_view index);

  /// False: the file has no such bytes, or is gone.
  bool read(std::uint64_t place, std::size_t size, std::string& into);

  static std::uint32_t segment_of(std::uint64_t place) noexcept {
    return static_cast<std::uint32_t>(place >> 32U);
  }
  std::uint32_t current() const noexcept { return current_; }
  void drop(std::uint32_t segment);

 private:
  SegmentLog(std::string folder, std::uint64_t segment_bytes)
      : folder_(std::move(folder)), segment_bytes_(segment_bytes) {}
  std::string path_of(std::uint32_t segment) const;
  int file_of(std::uint32_t segment);
  void begin_segment();
  [[noreturn]] void fail_closed(std::string_view doing) const noexcept;

  std::string folder_;
  std::uint64_t segment_bytes_;  ///< A file with so many is full; earlier ones may have others.
  std::map<std::uint32_t, int> files_;  ///< -1: not open.
  std::uint32_t current_ = 0;           ///< 0: there is none yet.
  std::uint64_t end_ = 0;               ///< Of what was written in the current one.
  std::uint64_t room_ = 0;              ///< The current one's length.
  std::uint64_t number_ = 0;            ///< Of the last frame.
  int open_files_ = 0;
};

}  // namespace idem::segments
