#include "store/log/due_lists.hpp"

#include "core/bytes/checksum.hpp"
#include "store/log/keys.hpp"

#include <algorithm>
#include <iterator>

namespace idem::segments {
namespace {

constexpr std::size_t due_entry_bytes = sizeof(RecordId::bytes) + sizeof(std::uint64_t);

/// A slice is in one list, or at the end of one and in the beginning of some others.
constexpr std::size_t lists_remembered = 64;

DueLists::Entry entry_at(std::string_view list, std::size_t at) {
  DueLists::Entry entry;
  list.copy(reinterpret_cast<char*>(entry.id.bytes.data()), entry.id.bytes.size(), at);
  entry.place = static_cast<std::int64_t>(ordered_at(list, at + entry.id.bytes.size()));
  return entry;
}

}  // namespace

bool DueLists::each(std::string_view key, std::string_view value,
                    const std::function<void(const Entry&)>& see) {
  const auto list = without_checksum(RecordId{}, value, key);
  if (!list) return false;
  for (std::size_t i = 0; i + due_entry_bytes <= list->size(); i += due_entry_bytes) {
    see(entry_at(*list, i));
  }
  return true;
}

void DueLists::add(StoreTime due, const Entry& entry) { added_[due].push_back(entry); }

void DueLists::flush(const IsPresent& is_present) {
  for (auto& [due, entries] : added_) {
    std::erase_if(entries, [&](const Entry& entry) { return !is_present(entry); });
    if (entries.empty()) continue;
    std::string key = ordered_key(to_bits(due));
    append_ordered(key, static_cast<std::uint64_t>(entries.front().place));
    bytes_.clear();
    for (const Entry& entry : entries) {
      bytes_.append(bytes_of(entry.id));
      append_ordered(bytes_, static_cast<std::uint64_t>(entry.place));
    }
    append_checksum(RecordId{}, bytes_, key);
    db_.append(Family::due, key, bytes_);
    if (key < first_) first_ = key;
  }
  added_.clear();
}

void DueLists::note_gone(std::string_view key, std::size_t bytes) {
  gone_.insert_or_assign(std::string(key), bytes);
  if (gone_.size() > lists_remembered) gone_.erase(std::prev(gone_.end()));
}

std::vector<RecordId> DueLists::due(StoreTime now, std::size_t limit, const IsPresent& is_present) {
  std::vector<RecordId> ids;
  const std::string end = ordered_key(to_bits(now) + 1);
  auto at = db_.iterate(Family::due);
  bool is_first = true;
  for (at.to(first_); at.is_on_key() && ids.size() < limit; at.next()) {
    const std::string_view key = at.key();
    if (is_first) first_ = key;
    if (key >= end) break;
    const auto list = without_checksum(RecordId{}, at.value(), key);
    if (!list) {
      db_.fail_step(Family::due, "the checksum of a list does not match");
      return ids;
    }
    const auto known = gone_.find(key);
    std::size_t gone = known == gone_.end() ? 0 : known->second;
    bool is_empty = true;
    for (std::size_t i = gone; i + due_entry_bytes <= list->size() && ids.size() < limit;
         i += due_entry_bytes) {
      const Entry entry = entry_at(*list, i);
      if (is_present(entry)) {
        is_empty = false;
        ids.push_back(entry.id);
      } else if (is_empty) {
        gone = i + due_entry_bytes;
      }
    }
    // The next list is the first one from the next transaction on.
    is_first = is_first && is_empty;
    if (!is_empty) {
      if (gone > 0) note_gone(key, gone);
      continue;
    }
    db_.remove(Family::due, key);
    if (known != gone_.end()) gone_.erase(known);
  }
  db_.check(at, Family::due);
  return ids;
}

}  // namespace idem::segments
