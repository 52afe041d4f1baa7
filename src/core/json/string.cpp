#include "core/json/string.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace idem {
namespace {

// How many of eight bytes, from the first on, need no escape in a string: 20..7F without `"` and
// `\`. Tests "a byte is below / equals" on all eight at once (Hacker's Delight, 6-1): a borrow can
// only mark bytes behind one that is rightly marked, so the first mark is exact.
std::size_t plain_bytes(const char* eight) noexcept {
  static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t highs = ones * 0x80;
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  const auto below = [&](std::uint64_t w, std::uint64_t n) { return (w - ones * n) & ~w & highs; };
  const std::uint64_t marks = (word & highs) | below(word, 0x20) | below(word ^ (ones * '"'), 1) |
                              below(word ^ (ones * '\\'), 1);
  return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
}

// The UTF-16 code unit of the `\uXXXX` whose backslash is at `at`.
std::optional<char32_t> code_unit(std::string_view literal, std::size_t at) noexcept {
  if (literal.size() - at < 6 || literal[at] != '\\' || literal[at + 1] != 'u') return {};
  char32_t unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = hex_value(literal[i]);
    if (digit < 0) return {};
    unit = unit * 16 + static_cast<char32_t>(digit);
  }
  return unit;
}

// The character of a two-byte escape, or 0.
char simple_escape(char c) noexcept {
  switch (c) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case '/':
      return '/';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

}  // namespace

std::expected<StringLiteral, JsonError> scan_string(std::string_view text, std::size_t quote) {
  StringLiteral literal{.begin = quote + 1};
  std::size_t at = quote + 1;
  for (;;) {
    while (text.size() - at >= 8) {
      const std::size_t plain = plain_bytes(text.data() + at);
      at += plain;
      if (plain < 8) break;
    }
    if (at == text.size()) return std::unexpected(JsonError{at, "unterminated string"});
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '"') break;
    if (byte < 0x20) return std::unexpected(JsonError{at, "control character in a string"});
    if (byte == '\\') {
      literal.plain = false;
      // The escaped byte may be a quote; decode_string() checks the escape.
      if (at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) ++at;
      ++at;
    } else {
      const std::size_t length = utf8_sequence(text, at);
      if (length == 0) return std::unexpected(JsonError{at, "invalid UTF-8"});
      at += length;
    }
  }
  literal.end = at;
  return literal;
}

std::expected<void, JsonError> decode_string(std::string_view text, const StringLiteral& literal,
                                             std::string& out) {
  const std::string_view inside = text.substr(0, literal.end);
  std::size_t at = literal.begin;
  while (at < inside.size()) {
    const std::size_t backslash = std::min(inside.find('\\', at), inside.size());
    out.append(inside, at, backslash - at);
    at = backslash;
    if (at == inside.size()) break;
    if (at + 1 < inside.size() && inside[at + 1] != 'u') {
      const char value = simple_escape(inside[at + 1]);
      if (value == 0) return std::unexpected(JsonError{at, "unknown escape"});
      out += value;
      at += 2;
      continue;
    }
    const std::optional<char32_t> unit = code_unit(inside, at);
    if (!unit) return std::unexpected(JsonError{at, "broken \\u escape"});
    if (*unit < 0xD800 || *unit > 0xDFFF) {
      append_utf8(out, *unit);
      at += 6;
      continue;
    }
    const std::optional<char32_t> low = code_unit(inside, at + 6);
    if (*unit > 0xDBFF || !low || *low < 0xDC00 || *low > 0xDFFF) {
      return std::unexpected(JsonError{at, "lone surrogate"});
    }
    append_utf8(out, 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00));
    at += 12;
  }
  return {};
}

}  // namespace idem
