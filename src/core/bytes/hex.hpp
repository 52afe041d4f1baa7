#pragma once

#include "core/bytes/ascii.hpp"

#include <idem/record.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Bytes as hexadecimal digits; to_hex() of <idem/record.hpp> writes arrays. Pure, from any thread.
namespace idem {

inline constexpr std::string_view hex_digits = "0123456789abcdef";
inline constexpr std::string_view capital_hex_digits = "0123456789ABCDEF";

inline void append_hex(std::string& out, std::string_view bytes,
                       std::string_view digits = hex_digits) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {digits[byte >> 4], digits[byte & 15]};
  }
}

/// In lower case.
inline std::string hex_of(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  append_hex(text, bytes);
  return text;
}

/// The bytes of a text in lower case; none for any other text, so that each has one spelling.
template <std::size_t N>
constexpr std::optional<std::array<std::uint8_t, N>> from_hex(std::string_view text) noexcept {
  std::array<std::uint8_t, N> bytes{};
  if (text.size() != 2 * N) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto value = hex_digits.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | value);
  }
  return bytes;
}

/// The id of a handle, which to_hex() has written; none: the text is no handle.
constexpr std::optional<RecordId> parse_handle(std::string_view text) noexcept {
  const auto bytes = from_hex<sizeof(RecordId::bytes)>(text);
  return bytes ? std::optional(RecordId{*bytes}) : std::nullopt;
}

}  // namespace idem
