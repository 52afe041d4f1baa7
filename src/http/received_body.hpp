#pragma once

#include "http/spill_space.hpp"

#include <string>

namespace idem::http {

/// A request body held whole: in memory up to limits::request_body_memory_max, beyond it in an
/// unlinked file that is mapped read-only. One thread at a time; `space` must outlive it.
class ReceivedBody {
 public:
  explicit ReceivedBody(SpillSpace& space) noexcept : space_(&space) {}

  /// Makes room at once for a body of a known size.
  void expect(std::uint64_t bytes);
  /// False: there is no room for it; nothing of it is kept and no file stays behind.
  bool append(std::string_view piece);
  /// After the last piece, and once. False as for append().
  bool complete();

  std::size_t size() const noexcept { return size_; }
  /// After complete(): the whole body, contiguous, for as long as this object is not moved from.
  std::string_view bytes() const noexcept { return file_ ? file_->bytes() : memory_; }

 private:
  bool spill(std::string_view bytes);

  SpillSpace* space_;
  std::string memory_;  ///< All of it; with a file, what is not written yet.
  std::unique_ptr<SpillFile> file_;
  std::size_t size_ = 0;
};

}  // namespace idem::http
