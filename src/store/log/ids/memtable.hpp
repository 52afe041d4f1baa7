#pragma once

#include "store/log/ids/entry.hpp"

#include <vector>

namespace idem::segments {

/// The newest entries, in memory: an open hash table with a byte of each hash apart, as most looks
/// are for ids that are not in it, and only a list and the file that they become need an order. An
/// entry that is gone stays, so that those in older files do not count.
class Memtable {
 public:
  /// Room for so many before it grows.
  explicit Memtable(std::size_t entries = 0);

  /// In the place of an earlier one of this id.
  void put(const IdEntry& entry);
  /// Null: it says nothing about this id. Valid until the next put().
  const IdEntry* find(const RecordId& id) const noexcept;
  std::size_t size() const noexcept { return size_; }

  /// The first `most` in order from `from` on.
  std::vector<IdEntry> sorted(const RecordId& from, std::size_t most) const;

 private:
  /// The cell of this id, or the free one where it would be.
  std::size_t cell_of(const RecordId& id, std::uint64_t hash) const noexcept;
  void grow();

  std::vector<std::uint8_t> marks_;  ///< A power of two. 0: the cell is free.
  std::vector<IdEntry> entries_;
  std::size_t size_ = 0;
};

}  // namespace idem::segments
