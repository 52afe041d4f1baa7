#include "store/embedded/id_index.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace idem::embedded {

// One page: an insert moves half of it at most, and about one insert in a hundred splits it.
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

// The first block always exists and begins with the least of all entries, so every entry has one.
IdIndex::IdIndex(std::vector<Entry> entries) : size_(entries.size()) {
  std::ranges::sort(entries);
  std::span<Entry> rest = entries;
  do {
    const auto some = rest.first(std::min(rest.size(), Block::packed));
    auto block = new_block();
    std::ranges::copy(some, block->begin());
    block->count = some.size();
    firsts_.push_back(blocks_.empty() ? least_of(0) : some.front());
    blocks_.push_back(std::move(block));
    rest = rest.subspan(some.size());
  } while (!rest.empty());
}

/// The block in whose range the entry is.
std::size_t IdIndex::block_of(Entry entry) const noexcept {
  const auto behind = std::ranges::upper_bound(firsts_, entry);
  return static_cast<std::size_t>(behind - firsts_.begin()) - 1;
}

/// Heads are parts of digests, so they spread evenly, and a head's share of the block's range tells
/// its place. A look there first touches two cache lines, not six. A wrong guess only costs time.
IdIndex::Entry* IdIndex::lower_bound_in(std::size_t block, Entry entry) const noexcept {
  Block& in = *blocks_[block];
  const std::uint64_t low = firsts_[block].head;
  const std::uint64_t high = block + 1 < firsts_.size() ? firsts_[block + 1].head
                                                        : std::numeric_limits<std::uint64_t>::max();
  const double share =
      static_cast<double>(entry.head - low) / (static_cast<double>(high - low) + 1);
  const auto guess = static_cast<std::size_t>(share * static_cast<double>(in.count));
  Entry* begin = in.begin() + std::min(guess, in.count);
  Entry* end = begin;
  for (std::ptrdiff_t step = 4; begin != in.begin() && !(begin[-1] < entry); step *= 2) {
    end = begin;
    begin -= std::min(step, begin - in.begin());
  }
  for (std::ptrdiff_t step = 4; end != in.end() && *end < entry; step *= 2) {
    begin = end;
    end += std::min(step, in.end() - end);
  }
  return std::lower_bound(begin, end, entry);
}

void IdIndex::insert(Entry entry) {
  std::size_t at = block_of(entry);
  if (blocks_[at]->count == Block::room) {
    split(at);
    if (entry > firsts_[at + 1]) ++at;
  }
  Block& block = *blocks_[at];
  Entry* const place = lower_bound_in(at, entry);
  IDEM_ASSERT(place == block.end() || *place != entry);
  std::copy_backward(place, block.end(), block.end() + 1);
  *place = entry;
  ++block.count;
  ++size_;
}

void IdIndex::split(std::size_t at) {
  Block& full = *blocks_[at];
  auto upper = new_block();
  Entry* const middle = full.begin() + Block::room / 2;
  std::copy(middle, full.end(), upper->begin());
  upper->count = static_cast<std::size_t>(full.end() - middle);
  full.count -= upper->count;
  const auto next = static_cast<std::ptrdiff_t>(at + 1);
  firsts_.insert(firsts_.begin() + next, *upper->begin());
  blocks_.insert(blocks_.begin() + next, std::move(upper));
}

void IdIndex::erase(Entry entry) {
  const std::size_t at = block_of(entry);
  Block& block = *blocks_[at];
  Entry* const place = lower_bound_in(at, entry);
  IDEM_ASSERT(place != block.end() && *place == entry);
  std::copy(place + 1, block.end(), place);
  --block.count;
  --size_;
  if (block.count < Block::room / 4) join_with_next(at);
}

// Nearly empty blocks must not stay after many erased records.
void IdIndex::join_with_next(std::size_t at) {
  if (at + 1 == blocks_.size()) return;
  Block& block = *blocks_[at];
  Block& next = *blocks_[at + 1];
  if (block.count + next.count > Block::packed) return;
  std::copy(next.begin(), next.end(), block.end());
  block.count += next.count;
  firsts_.erase(firsts_.begin() + static_cast<std::ptrdiff_t>(at + 1));
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at + 1));
}

std::optional<IdIndex::Entry> IdIndex::first_from(std::uint64_t head) const noexcept {
  const Entry from = least_of(head);
  const std::size_t block = block_of(from);
  return at_or_behind(block, lower_bound_in(block, from));
}

std::optional<IdIndex::Entry> IdIndex::next(Entry after) const noexcept {
  const std::size_t block = block_of(after);
  const Entry* place = lower_bound_in(block, after);
  if (place != blocks_[block]->end() && *place == after) ++place;
  return at_or_behind(block, place);
}

std::optional<IdIndex::Entry> IdIndex::at_or_behind(std::size_t block,
                                                    const Entry* place) const noexcept {
  while (place == blocks_[block]->end()) {
    if (++block == blocks_.size()) return std::nullopt;
    place = blocks_[block]->begin();
  }
  return *place;
}

}  // namespace idem::embedded
