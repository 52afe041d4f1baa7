#include "http/received_body.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::http {

void ReceivedBody::expect(std::uint64_t bytes) {
  memory_.reserve(std::min<std::uint64_t>(bytes, limits::request_body_memory_max));
}

bool ReceivedBody::append(std::string_view piece) {
  if (memory_.size() + piece.size() > limits::request_body_memory_max) {
    if (!spill(memory_)) return false;
    memory_.clear();
  }
  if (piece.size() > limits::request_body_memory_max) {
    if (!spill(piece)) return false;
  } else {
    memory_.append(piece);
  }
  size_ += piece.size();
  return true;
}

bool ReceivedBody::complete() {
  if (!file_) return true;
  if (!spill(memory_)) return false;
  std::string().swap(memory_);  // Assigning an empty one would keep its memory.
  const bool mapped = file_->map();
  if (!mapped) file_.reset();
  return mapped;
}

bool ReceivedBody::spill(std::string_view bytes) {
  if (!file_) file_ = space_->make_file();
  if (file_ && file_->append(bytes)) return true;
  file_.reset();
  std::string().swap(memory_);
  return false;
}

}  // namespace idem::http
