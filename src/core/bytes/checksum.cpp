#include "core/bytes/checksum.hpp"

#include "core/bytes/byte_cursor.hpp"

// Inlined, so that no program has to link it.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem {

std::uint64_t checksum_of(const RecordId& id, std::string_view bytes,
                          std::string_view beside) noexcept {
  std::uint64_t sum = XXH3_64bits(id.bytes.data(), id.bytes.size());
  sum = XXH3_64bits_withSeed(bytes.data(), bytes.size(), sum);
  // The seed detects bytes that moved from one part to the other.
  return beside.empty() ? sum : XXH3_64bits_withSeed(beside.data(), beside.size(), sum);
}

void append_checksum(const RecordId& id, std::string& bytes, std::string_view beside) {
  const std::uint64_t sum = little_endian(checksum_of(id, bytes, beside));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

std::optional<std::string_view> without_checksum(const RecordId& id, std::string_view bytes,
                                                 std::string_view beside) noexcept {
  if (bytes.size() < checksum_bytes) return std::nullopt;
  const std::string_view before = bytes.substr(0, bytes.size() - checksum_bytes);
  ByteReader behind(bytes.substr(before.size()));
  if (behind.number<std::uint64_t>() != checksum_of(id, before, beside)) return std::nullopt;
  return before;
}

}  // namespace idem
