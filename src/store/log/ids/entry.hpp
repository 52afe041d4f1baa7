#pragma once

#include <idem/record.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace idem::segments {

/// Where the present version of a record is.
struct IdEntry {
  RecordId id;
  std::uint64_t place = 0;  ///< 0: the record is gone.
  std::uint32_t size = 0;
  State state{};

  bool is_gone() const noexcept { return place == 0; }
  bool operator==(const IdEntry&) const = default;

  /// As it is in files.
  static constexpr std::size_t bytes =
      sizeof(RecordId::bytes) + sizeof place + sizeof size + sizeof(std::uint8_t);
};

/// The first eight bytes of an id, as a number that orders as they do.
inline std::uint64_t head_of(const RecordId& id) noexcept {
  std::uint64_t head = 0;
  std::memcpy(&head, id.bytes.data(), sizeof head);
  return std::endian::native == std::endian::little ? std::byteswap(head) : head;
}
/// The last eight, likewise.
inline std::uint64_t tail_of(const RecordId& id) noexcept {
  std::uint64_t tail = 0;
  std::memcpy(&tail, id.bytes.data() + sizeof tail, sizeof tail);
  return std::endian::native == std::endian::little ? std::byteswap(tail) : tail;
}

/// Into IdEntry::bytes bytes.
void write_entry(const IdEntry& entry, char* out) noexcept;
IdEntry read_entry(const char* bytes) noexcept;

}  // namespace idem::segments
