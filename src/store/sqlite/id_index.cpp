#include "store/sqlite/id_index.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace idem::sqlite {

// A page's worth: an insert moves half of it at most, and a split happens once in a hundred.
struct IdIndex::Block {
  static constexpr std::size_t room = 254;
  static constexpr std::size_t packed = room * 3 / 4;
  std::size_t count = 0;
  std::array<Entry, room> entries;

  Entry* begin() noexcept { return entries.data(); }
  Entry* end() noexcept { return entries.data() + count; }
};

namespace {

IdIndex::Entry least_of(std::uint64_t head) {
  return {head, std::numeric_limits<std::int64_t>::min()};
}

}  // namespace

void IdIndex::DropBlock::operator()(Block* block) const noexcept { delete block; }

std::unique_ptr<IdIndex::Block, IdIndex::DropBlock> IdIndex::new_block() {
  return std::unique_ptr<Block, DropBlock>(new Block);
}

std::uint64_t IdIndex::head_of(const RecordId& id) noexcept {
  std::uint64_t head = 0;
  for (const std::uint8_t byte : std::span(id.bytes).first(sizeof head)) head = head << 8 | byte;
  return head;
}

RecordId IdIndex::last_of(std::uint64_t head) noexcept {
  RecordId id;
  id.bytes.fill(0xFF);
  for (std::size_t i = sizeof head; i-- > 0; head >>= 8) id.bytes[i] = head & 0xFF;
  return id;
}

// The first block is there from the beginning, under the least of all entries: no stretch lies
// before it.
IdIndex::IdIndex(std::vector<Entry> entries) : size_(entries.size()) {
  std::ranges::sort(entries);
  if (entries.empty()) blocks_.emplace(least_of(0), new_block());
  for (std::span<Entry> rest = entries; !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), Block::packed));
    auto block = new_block();
    std::ranges::copy(some, block->begin());
    block->count = some.size();
    const Entry first = blocks_.empty() ? least_of(0) : some.front();
    blocks_.emplace_hint(blocks_.end(), first, std::move(block));
    rest = rest.subspan(some.size());
  }
}

/// The one in whose stretch it lies.
IdIndex::Blocks::iterator IdIndex::block_of(Entry entry) noexcept {
  return std::prev(blocks_.upper_bound(entry));
}

void IdIndex::insert(Entry entry) {
  auto at = block_of(entry);
  if (at->second->count == Block::room) {
    Block& full = *at->second;
    auto upper = new_block();
    Entry* const middle = full.begin() + Block::room / 2;
    std::copy(middle, full.end(), upper->begin());
    upper->count = static_cast<std::size_t>(full.end() - middle);
    full.count -= upper->count;
    const Entry first = *upper->begin();
    const auto made = blocks_.emplace_hint(std::next(at), first, std::move(upper));
    if (entry > first) at = made;
  }
  Block& block = *at->second;
  Entry* const end = block.end();
  Entry* const place = std::lower_bound(block.begin(), end, entry);
  IDEM_ASSERT(place == end || *place != entry);
  std::copy_backward(place, end, end + 1);
  *place = entry;
  ++block.count;
  ++size_;
}

void IdIndex::erase(Entry entry) {
  const auto at = block_of(entry);
  Block& block = *at->second;
  Entry* const place = std::lower_bound(block.begin(), block.end(), entry);
  IDEM_ASSERT(place != block.end() && *place == entry);
  std::copy(place + 1, block.end(), place);
  --block.count;
  --size_;
  if (block.count < Block::room / 4) join_with_next(at);
}

// What is left of many erased records must not keep their blocks.
void IdIndex::join_with_next(Blocks::iterator at) {
  const auto next = std::next(at);
  Block& block = *at->second;
  if (next == blocks_.end() || block.count + next->second->count > Block::packed) return;
  std::copy(next->second->begin(), next->second->end(), block.end());
  block.count += next->second->count;
  blocks_.erase(next);
}

std::optional<IdIndex::Entry> IdIndex::first_from(std::uint64_t head) const noexcept {
  return first_where(
      Entry{head, std::numeric_limits<std::int64_t>::min()},
      [](Entry* begin, Entry* end, Entry from) { return std::lower_bound(begin, end, from); });
}

std::optional<IdIndex::Entry> IdIndex::next(Entry after) const noexcept {
  return first_where(after, [](Entry* begin, Entry* end, Entry from) {
    return std::upper_bound(begin, end, from);
  });
}

template <class Bound>
std::optional<IdIndex::Entry> IdIndex::first_where(Entry from, Bound bound) const noexcept {
  for (auto at = std::prev(blocks_.upper_bound(from)); at != blocks_.end(); ++at) {
    Block& block = *at->second;
    const Entry* const found = bound(block.begin(), block.end(), from);
    if (found != block.end()) return *found;
  }
  return std::nullopt;
}

}  // namespace idem::sqlite
