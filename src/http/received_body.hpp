#pragma once

#include "http/spill_space.hpp"
#include "loop/task.hpp"

#include <string>

namespace idem::http {

/// A request body held whole: in memory up to limits::request_body_memory_max, beyond it in an
/// unlinked file that is mapped read-only. One thread at a time; `space` must outlive it.
class ReceivedBody {
 public:
  explicit ReceivedBody(SpillSpace& space) noexcept : space_(&space) {}

  /// Makes room at once for a body of a known size.
  void expect(std::uint64_t bytes);
  /// Whether spill() comes before append() of so many bytes.
  bool must_spill(std::size_t bytes) const noexcept;
  void append(std::string_view piece);
  /// Moves what is in memory into the file, on a thread of the space. False: there is no room for
  /// it; nothing of the body is kept and no file stays behind.
  Task<bool> spill(Loop& loop);
  /// After the last piece, and once; only where a part is in the file. False as for spill().
  bool must_complete() const noexcept { return file_ != nullptr; }
  Task<bool> complete(Loop& loop);

  std::size_t size() const noexcept { return size_; }
  /// In the end: the whole body, contiguous, for as long as this object is not moved from.
  std::string_view bytes() const noexcept { return file_ ? file_->bytes() : memory_; }

 private:
  Task<bool> write_out(Loop& loop, bool is_last);

  SpillSpace* space_;
  std::string memory_;  ///< All of it; with a file, what is not written yet.
  std::shared_ptr<SpillFile> file_;
  std::size_t size_ = 0;
};

}  // namespace idem::http
