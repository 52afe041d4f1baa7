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

}  // namespace

// Half of the cells at most are used.
Memtable::Memtable(std::size_t entries)
    : cells_(std::bit_ceil(std::max(cells_min, 2 * entries))) {}

std::size_t Memtable::cell_of(const RecordId& id) const noexcept {
  std::size_t cell = hash_of(id) & (cells_.size() - 1);
  while (cells_[cell].is_used && cells_[cell].entry.id != id) {
    cell = (cell + 1) & (cells_.size() - 1);
  }
  return cell;
}

void Memtable::put(const IdEntry& entry) {
  Cell& cell = cells_[cell_of(entry.id)];
  cell.entry = entry;
  if (std::exchange(cell.is_used, true)) return;
  if (++size_ * 2 > cells_.size()) grow();
}

const IdEntry* Memtable::find(const RecordId& id) const noexcept {
  const Cell& cell = cells_[cell_of(id)];
  return cell.is_used ? &cell.entry : nullptr;
}

void Memtable::grow() {
  std::vector<Cell> before(cells_.size() * 2);
  before.swap(cells_);
  for (const Cell& cell : before) {
    if (cell.is_used) cells_[cell_of(cell.entry.id)] = cell;
  }
}

std::vector<IdEntry> Memtable::sorted(const RecordId& from, std::size_t most) const {
  std::vector<IdEntry> entries;
  const auto is_before = [](const IdEntry& a, const IdEntry& b) { return a.id < b.id; };
  for (const Cell& cell : cells_) {
    if (!cell.is_used || cell.entry.id < from) continue;
    if (entries.size() < most) {
      entries.push_back(cell.entry);
      if (entries.size() == most) std::ranges::make_heap(entries, is_before);
    } else if (!entries.empty() && is_before(cell.entry, entries.front())) {
      std::ranges::pop_heap(entries, is_before);
      entries.back() = cell.entry;
      std::ranges::push_heap(entries, is_before);
    }
  }
  std::ranges::sort(entries, is_before);
  return entries;
}

}  // namespace idem::segments
