#include "store/log/segments.hpp"

#include "store/log/keys.hpp"

namespace idem::segments {

// At a start all files are looked at.
Segments::Segments(Database& db)
    : db_(db), dropped_much_(db.file_bytes() / 4), dropped_(dropped_much_) {
  auto at = db_.iterate(Family::segments);
  for (at.to_first(); at.is_on_key(); at.next()) {
    const auto segment = static_cast<std::uint32_t>(ordered_at(at.key(), 0));
    present_[segment] = ordered_at(at.value(), 0);
    if (present_[segment] == 0) emptied_.insert(segment);
  }
  db_.check(at, Family::segments);
  // Deleted before a power loss brought them back; or what noted them is lost. So what is present
  // in them is copied before they are deleted.
  for (const std::uint32_t file : db_.files_of_versions()) {
    if (file >= db_.current_file() || present_.contains(file)) continue;
    present_[file] = db_.size_of_file(file);
    unknown_.insert(file);
  }
}

void Segments::add(std::uint32_t segment, std::uint32_t bytes) {
  present_[segment] += bytes;
  changed_.insert(segment);
  emptied_.erase(segment);
}

void Segments::drop(std::uint32_t segment, std::uint32_t bytes) {
  std::uint64_t& present = present_[segment];
  present -= std::min<std::uint64_t>(present, bytes);
  changed_.insert(segment);
  dropped_ += bytes;
  if (present == 0) emptied_.insert(segment);
}

// What this transaction emptied is needed if it does not come to its commit.
void Segments::flush() {
  std::erase_if(emptied_, [this](std::uint32_t segment) {
    if (segment >= db_.current_file() || changed_.contains(segment)) return false;
    db_.drop_file(segment);
    db_.remove(Family::segments, ordered_key(std::uint64_t{segment}));
    present_.erase(segment);
    return true;
  });
  for (const std::uint32_t segment : changed_) {
    db_.append(Family::segments, ordered_key(std::uint64_t{segment}),
               ordered_key(present_.at(segment)));
  }
  changed_.clear();
}

void Segments::has_no_more(std::uint32_t segment) {
  present_[segment] = 0;
  unknown_.erase(segment);
  changed_.insert(segment);
  emptied_.insert(segment);
}

std::optional<std::uint32_t> Segments::sparsest(const std::set<std::uint32_t>& but) {
  dropped_ = 0;
  for (const std::uint32_t segment : unknown_) {
    if (!but.contains(segment)) return segment;
  }
  std::optional<std::uint32_t> best;
  double least = 2.0 / 3.0;
  for (const auto& [segment, present] : present_) {
    if (present == 0 || segment >= db_.current_file() || but.contains(segment)) continue;
    const auto size = static_cast<double>(db_.size_of_file(segment));
    if (size == 0 || static_cast<double>(present) / size >= least) continue;
    least = static_cast<double>(present) / size;
    best = segment;
  }
  return best;
}

}  // namespace idem::segments
