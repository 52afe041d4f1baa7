#include "store/log/compaction.hpp"

#include "core/bytes/byte_cursor.hpp"

#include <algorithm>

namespace idem::segments {

std::optional<Version> version_in(std::string_view bytes) {
  Version version;
  if (bytes.size() < sizeof(RecordId::bytes)) return std::nullopt;
  version.id = bytes.substr(0, sizeof(RecordId::bytes));
  ByteReader in(bytes.substr(version.id.size()));
  version.record = in.framed();
  version.answer = in.framed();
  version.body = in.framed();
  if (in.is_cut_short()) return std::nullopt;
  version.bytes = bytes.substr(0, version.id.size() + framed_bytes(version.record) +
                                      framed_bytes(version.answer) + framed_bytes(version.body));
  return version;
}

void Compaction::step(std::size_t bytes, const Move& move) {
  if (!file_) {
    file_ = segments_.sparsest(left_);
    goes_on_ = file_.has_value();
    if (!file_) return;
    at_ = 0;
    size_ = db_.size_of_file(*file_);
  }
  const std::size_t some = std::min<std::uint64_t>(bytes, size_ - at_);
  const std::uint64_t place = std::uint64_t{*file_} << 32U | at_;
  if (!db_.read_version(place, some, bytes_)) return give_up();
  std::size_t seen = 0;
  while (const auto version = version_in(std::string_view(bytes_).substr(seen))) {
    if (!move(*version, static_cast<std::int64_t>(place + seen))) return give_up();
    seen += version->bytes.size();
  }
  // One that is larger than the part.
  if (seen == 0 && some < size_ - at_) return step(bytes * 2, move);
  at_ += seen;
  if (at_ == size_) segments_.has_no_more(*file_);
  if (seen == 0 || at_ == size_) give_up();
}

/// With what was copied; a file that has present versions still is not looked at again.
void Compaction::give_up() { left_.insert(*std::exchange(file_, std::nullopt)); }

}  // namespace idem::segments
