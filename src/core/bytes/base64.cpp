#include "core/bytes/base64.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace idem {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

using Values = std::array<std::int8_t, 256>;

constexpr Values values_of(char of_62, char of_63) {
  Values table{};
  table.fill(-1);
  for (std::size_t i = 0; i < 62; ++i) {
    table[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
  }
  table[static_cast<unsigned char>(of_62)] = 62;
  table[static_cast<unsigned char>(of_63)] = 63;
  return table;
}

constexpr Values plain_values = values_of('+', '/');
constexpr Values url_values = values_of('-', '_');

/// Without padding.
std::optional<std::string> bytes_of(std::string_view text, const Values& values) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const auto value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  const bool has_left_over_bits = (bits & ((1U << count) - 1)) != 0;
  return has_left_over_bits ? std::nullopt : std::optional(std::move(bytes));
}

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t group =
        byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2);
    text += digits[group >> 18];
    text += digits[group >> 12 & 63];
    text += at + 1 < bytes.size() ? digits[group >> 6 & 63] : '=';
    text += at + 2 < bytes.size() ? digits[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  return bytes_of(text, plain_values);
}

std::optional<std::string> from_base64url(std::string_view text) {
  return bytes_of(text, url_values);
}

}  // namespace idem
