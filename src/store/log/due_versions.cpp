#include "store/log/due_versions.hpp"

namespace idem::segments {
namespace {

/// Twenty times what a small answer has; at most so much is read for one that is alone.
constexpr std::uint64_t read_at_once = 64UL << 10U;

}  // namespace

void DueVersions::add(const IdEntry& present) {
  entries_[present.id] = present;
  sizes_[present.place] = present.size;
}

void DueVersions::clear() noexcept {
  entries_.clear();
  sizes_.clear();
  bytes_.clear();
}

const IdEntry* DueVersions::find(const RecordId& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<std::string_view> DueVersions::version(const IdEntry& present) {
  const auto is_there = [&] {
    return present.place >= begin_ && present.place + present.size <= begin_ + bytes_.size();
  };
  if (!is_there() && !(read_on_from(present.place) && is_there())) return std::nullopt;
  return std::string_view(bytes_).substr(present.place - begin_, present.size);
}

/// False: no other one of them lies near behind it, or not all of it can be read.
bool DueVersions::read_on_from(std::uint64_t place) {
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
  begin_ = place;
  if (db_.read_version(place, end - place, bytes_)) return true;
  bytes_.clear();
  return false;
}

}  // namespace idem::segments
