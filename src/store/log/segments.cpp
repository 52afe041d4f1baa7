#include "store/log/segments.hpp"

#include "store/log/keys.hpp"

namespace idem::segments {

Segments::Segments(Database& db) : db_(db) {
  const auto at = db_.iterate(Family::segments);
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    present_[static_cast<std::uint32_t>(ordered_at(view(at->key()), 0))] =
        ordered_at(view(at->value()), 0);
  }
  db_.check(*at, "the files of versions");
}

void Segments::add(std::uint32_t segment, std::uint32_t bytes) {
  present_[segment] += bytes;
  changed_.insert(segment);
}

void Segments::drop(std::uint32_t segment, std::uint32_t bytes) {
  std::uint64_t& present = present_[segment];
  present -= std::min<std::uint64_t>(present, bytes);
  changed_.insert(segment);
}

void Segments::flush() {
  drop_empty();
  for (const std::uint32_t segment : changed_) {
    db_.append(Family::segments, ordered_key(std::uint64_t{segment}),
               ordered_key(present_.at(segment)));
  }
  changed_.clear();
}

// Once for each file that begins.
void Segments::drop_empty() {
  if (looked_at_ == db_.current_file()) return;
  looked_at_ = db_.current_file();
  for (auto at = present_.begin(); at != present_.end();) {
    const auto [segment, bytes] = *at;
    // What this transaction emptied is needed if it does not come to its commit.
    if (bytes > 0 || segment >= looked_at_ || changed_.contains(segment)) {
      ++at;
      continue;
    }
    db_.drop_file(segment);
    db_.remove(Family::segments, ordered_key(std::uint64_t{segment}));
    at = present_.erase(at);
  }
}

}  // namespace idem::segments
