#pragma once

#include "store/record_rows.hpp"

#include <bit>

namespace idem::segments {

/// Appends a number whose bytes order as it does.
inline void append_ordered(std::string& key, std::uint64_t number) {
  if constexpr (std::endian::native == std::endian::little) number = std::byteswap(number);
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}
inline std::uint64_t ordered_at(std::string_view key, std::size_t at) noexcept {
  std::uint64_t number = 0;
  if (key.size() < at + sizeof number) return 0;
  std::memcpy(&number, key.data() + at, sizeof number);
  return std::endian::native == std::endian::little ? std::byteswap(number) : number;
}

/// Moments before 1970 do not occur; they would order behind the others.
inline std::string ordered_key(std::uint64_t number) {
  std::string key;
  append_ordered(key, number);
  return key;
}
inline std::string ordered_key(std::int64_t place) {
  return ordered_key(static_cast<std::uint64_t>(place));
}

}  // namespace idem::segments
