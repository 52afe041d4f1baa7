#include "http/received_body.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::http {

void ReceivedBody::expect(std::uint64_t bytes) {
  memory_.reserve(std::min<std::uint64_t>(bytes, limits::request_body_memory_max));
}

bool ReceivedBody::must_spill(std::size_t bytes) const noexcept {
  return !memory_.empty() && memory_.size() + bytes > limits::request_body_memory_max;
}

void ReceivedBody::append(std::string_view piece) {
  memory_.append(piece);
  size_ += piece.size();
}

Task<bool> ReceivedBody::spill(Loop& loop) { return write_out(loop, false); }

Task<bool> ReceivedBody::complete(Loop& loop) { return write_out(loop, true); }

// The job has all that it uses: it may outlive this object where its loop ends.
Task<bool> ReceivedBody::write_out(Loop& loop, bool is_last) {
  using File = std::shared_ptr<SpillFile>;
  std::function<File()> work = [space = space_, file = std::move(file_), is_last,
                                bytes = std::move(memory_)]() mutable {
    if (!file) file = space->make_file();
    const bool is_kept = file && file->append(bytes) && (!is_last || file->map());
    return is_kept ? std::move(file) : nullptr;
  };
  memory_ = {};
  auto writing = run_offloaded(loop, space_->threads(), work);
  file_ = co_await writing;
  co_return file_ != nullptr;
}

}  // namespace idem::http
