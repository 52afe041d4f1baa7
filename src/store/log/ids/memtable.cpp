#include "store/log/ids/memtable.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>
#include <bit>

namespace idem::segments {
namespace {

constexpr std::size_t cells_min = 1024;

/// Secret, so that nobody can choose keys whose ids meet in one cell.
std::uint64_t seed() {
  static const std::uint64_t value = [] {
    std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
    random_bytes(bytes);
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }();
  return value;
}

std::uint64_t hash_of(const RecordId& id) noexcept {
  __extension__ using Wide = unsigned __int128;
  const auto product =
      static_cast<Wide>(head_of(id) ^ seed()) * (tail_of(id) ^ 0x9e3779b97f4a7c15U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

std::uint8_t mark_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint8_t>(0x80U | hash >> 57U);
}

}  // namespace

// Half of the cells are used then, and at most five eighths: the table is full at half of them, and
// the commit that fills it has room for the rest of its entries.
Memtable::Memtable(std::size_t entries)
    : marks_(std::bit_ceil(std::max(cells_min, 2 * entries))), entries_(marks_.size()) {}

std::size_t Memtable::cell_of(const RecordId& id, std::uint64_t hash) const noexcept {
  const std::uint8_t mark = mark_of(hash);
  std::size_t cell = hash & (marks_.size() - 1);
  while (marks_[cell] != 0 && (marks_[cell] != mark || entries_[cell].id != id)) {
    cell = (cell + 1) & (marks_.size() - 1);
  }
  return cell;
}

void Memtable::put(const IdEntry& entry) {
  const std::uint64_t hash = hash_of(entry.id);
  const std::size_t cell = cell_of(entry.id, hash);
  entries_[cell] = entry;
  if (std::exchange(marks_[cell], mark_of(hash)) != 0) return;
  if (++size_ * 8 > marks_.size() * 5) grow();
}

const IdEntry* Memtable::find(const RecordId& id) const noexcept {
  const std::size_t cell = cell_of(id, hash_of(id));
  return marks_[cell] != 0 ? &entries_[cell] : nullptr;
}

void Memtable::grow() {
  Memtable larger(marks_.size());
  for (std::size_t cell = 0; cell < marks_.size(); ++cell) {
    if (marks_[cell] != 0) larger.put(entries_[cell]);
  }
  *this = std::move(larger);
}

std::vector<IdEntry> Memtable::sorted(const RecordId& from, std::size_t most) const {
  std::vector<IdEntry> entries;
  const auto is_before = [](const IdEntry& a, const IdEntry& b) { return a.id < b.id; };
  for (std::size_t cell = 0; cell < marks_.size(); ++cell) {
    if (marks_[cell] == 0 || entries_[cell].id < from) continue;
    if (entries.size() < most) {
      entries.push_back(entries_[cell]);
      if (entries.size() == most) std::ranges::make_heap(entries, is_before);
    } else if (!entries.empty() && is_before(entries_[cell], entries.front())) {
      std::ranges::pop_heap(entries, is_before);
      entries.back() = entries_[cell];
      std::ranges::push_heap(entries, is_before);
    }
  }
  std::ranges::sort(entries, is_before);
  return entries;
}

}  // namespace idem::segments
