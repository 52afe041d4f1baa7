#pragma once

#include <idem/record.hpp>

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace idem::embedded {

/// The rows that may hold a record, in memory: the first eight bytes of each id with the number of
/// its row, in order. An index in the file would cost every settling write a page of its own,
/// because ids are digests and spread over the whole index. This one costs about 23 bytes a record.
///
/// It answers with candidates; the row itself has the full id. Two ids may begin alike, with a
/// chance of one in 2^64; the store then refuses the second.
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

  /// The entry must not be there yet.
  void insert(Entry entry);
  /// The entry must be there.
  void erase(Entry entry);

  /// The first entry of this head or a later one; none at the end.
  std::optional<Entry> first_from(std::uint64_t head) const noexcept;
  std::optional<Entry> next(Entry after) const noexcept;

  std::size_t size() const noexcept { return size_; }

 private:
  /// A run of consecutive entries; the blocks are in order, too.
  struct Block;
  struct DropBlock {
    void operator()(Block* block) const noexcept;
  };
  using OwnedBlock = std::unique_ptr<Block, DropBlock>;

  static OwnedBlock new_block();
  std::size_t block_of(Entry entry) const noexcept;
  Entry* lower_bound_in(std::size_t block, Entry entry) const noexcept;
  std::optional<Entry> at_or_behind(std::size_t block, const Entry* place) const noexcept;
  void split(std::size_t at);
  void join_with_next(std::size_t at);

  /// The first entry of each block when it was made; for the first block the least of all. Stored
  /// side by side, so that a search among them touches few cache lines.
  std::vector<Entry> firsts_;
  std::vector<OwnedBlock> blocks_;
  std::size_t size_ = 0;
};

}  // namespace idem::embedded
