#pragma once

#include <idem/record.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace idem::embedded {

/// The shard to which a record belongs, of `shards`. Part of the format: it never changes.
///
/// Every shard gets ids from the whole range, because a table of ids guesses places by it.
inline std::uint32_t shard_of(const RecordId& id, std::uint32_t shards) noexcept {
  std::uint64_t mixed = 0;
  for (std::size_t at = 0; at + sizeof mixed <= id.bytes.size(); at += sizeof mixed) {
    std::uint64_t part = 0;
    std::memcpy(&part, id.bytes.data() + at, sizeof part);
    if constexpr (std::endian::native == std::endian::big) part = std::byteswap(part);
    // The finalizer of SplitMix64 (Steele, Lea, Flood, 2014), after each part.
    mixed = (mixed ^ part) + 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebU;
    mixed ^= mixed >> 31U;
  }
  return static_cast<std::uint32_t>(mixed % shards);
}

}  // namespace idem::embedded
