#include "store/log/due_versions.hpp"

#include <algorithm>

namespace idem::segments {
namespace {

/// Some hundred small answers. One that is larger, or has none near behind it, is read alone.
constexpr std::uint64_t read_at_once = 64UL << 10U;

}  // namespace

void DueVersions::add(const IdEntry& present) {
  entries_[present.id] = present;
  sizes_[present.place] = present.size;
}

void DueVersions::clear() noexcept {
  entries_.clear();
  sizes_.clear();
  for (Part& part : parts_) part.bytes.clear();
}

const IdEntry* DueVersions::find(const RecordId& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<std::string_view> DueVersions::version(const IdEntry& present) {
  auto part = std::ranges::find_if(parts_, [&](const Part& one) { return one.has(present); });
  if (part == parts_.end()) {
    part = parts_.begin() + static_cast<std::ptrdiff_t>(oldest_);
    if (!read_on_from(present.place, *part) || !part->has(present)) return std::nullopt;
    oldest_ = (oldest_ + 1) % parts_.size();
  }
  return std::string_view(part->bytes).substr(present.place - part->begin, present.size);
}

/// False: no other one of them lies near behind it, or not all of it can be read.
bool DueVersions::read_on_from(std::uint64_t place, Part& into) {
  const auto first = sizes_.find(place);
  if (first == sizes_.end()) return false;
  std::uint64_t end = place;
  auto at = first;
  for (; at != sizes_.end(); ++at) {
    const auto& [begin, size] = *at;
    const bool is_near = VersionFiles::file_of(begin) == VersionFiles::file_of(place) &&
                         begin + size - place <= read_at_once;
    if (!is_near) break;
    end = begin + size;
  }
  if (at == first || at == std::next(first)) return false;
  into.begin = place;
  if (db_.read_version(place, end - place, into.bytes)) return true;
  into.bytes.clear();
  sizes_.clear();  // A part of them is not in the file, or damaged: each alone.
  return false;
}

}  // namespace idem::segments
