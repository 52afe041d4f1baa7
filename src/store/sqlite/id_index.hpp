#pragma once

#include <idem/record.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace idem::sqlite {

/// Which rows may hold a record, in memory: the first eight bytes of each id with the number of its
/// row, in order. An index in the file would cost every settling write a page of its own, because
/// ids are digests and so spread over all of it; about 23 bytes a record buy that off.
///
/// What it answers are candidates: the row says whose it is. That two ids begin alike is possible,
/// as one in 2^64 is; the second is then refused.
class IdIndex {
 public:
  struct Entry {
    std::uint64_t head = 0;  ///< The first eight bytes, as a number that orders as they do.
    std::int64_t place = 0;
    auto operator<=>(const Entry&) const = default;
  };

  static std::uint64_t head_of(const RecordId& id) noexcept;
  /// The last of all ids with this head.
  static RecordId last_of(std::uint64_t head) noexcept;

  /// From entries in any order, none of them twice.
  explicit IdIndex(std::vector<Entry> entries = {});

  /// It is not there yet.
  void insert(Entry entry);
  /// It is there.
  void erase(Entry entry);

  /// The first entry of this head or a later one; none at the end.
  std::optional<Entry> first_from(std::uint64_t head) const noexcept;
  std::optional<Entry> next(Entry after) const noexcept;

  std::size_t size() const noexcept { return size_; }

 private:
  /// Some entries that follow one another; the blocks lie one behind the other.
  struct Block;
  struct DropBlock {
    void operator()(Block* block) const noexcept;
  };
  /// Each under its first entry at the time it was made; the first under the least of all.
  using Blocks = std::map<Entry, std::unique_ptr<Block, DropBlock>>;

  template <class Bound>
  std::optional<Entry> first_where(Entry from, Bound bound) const noexcept;
  Blocks::iterator block_of(Entry entry) noexcept;
  static std::unique_ptr<Block, DropBlock> new_block();
  void join_with_next(Blocks::iterator at);

  Blocks blocks_;
  std::size_t size_ = 0;
};

}  // namespace idem::sqlite
