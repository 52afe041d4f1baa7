#include "core/bytes/utf8.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem {
namespace {

constexpr auto byte_of = [](char c) { return static_cast<unsigned char>(c); };

// The length that a lead byte starts, and the range of the second byte. All further bytes are
// 80..BF; the narrowed second byte rules out overlong forms, surrogates and > U+10FFFF.
struct Lead {
  unsigned char length = 0;
  unsigned char second_min = 0;
  unsigned char second_max = 0;
};

constexpr Lead lead_of(unsigned char byte) noexcept {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

std::size_t utf8_sequence(std::string_view text, std::size_t at) noexcept {
  const Lead lead = lead_of(byte_of(text[at]));
  if (lead.length < 2) return lead.length;
  if (text.size() - at < lead.length) return 0;
  const unsigned char second = byte_of(text[at + 1]);
  if (second < lead.second_min || second > lead.second_max) return 0;
  for (std::size_t i = 2; i < lead.length; ++i) {
    if ((byte_of(text[at + i]) & 0xC0) != 0x80) return 0;
  }
  return lead.length;
}

bool is_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_sequence(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string utf8_of(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence(text, at);
    if (out.size() + std::max<std::size_t>(length, 1) > bytes_max) break;
    out += length > 0 ? text.substr(at, length) : std::string_view("?");
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

void append_utf8(std::string& out, char32_t code_point) {
  IDEM_ASSERT(code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF));
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xC0 | (code_point >> 6)), tail(0)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xE0 | (code_point >> 12)), tail(6), tail(0)};
  } else {
    out += {static_cast<char>(0xF0 | (code_point >> 18)), tail(12), tail(6), tail(0)};
  }
}

bool utf16_less(std::string_view a, std::string_view b) noexcept {
  const auto [x, y] = std::ranges::mismatch(a, b);
  if (x == a.end() || y == b.end()) return a.size() < b.size();
  // UTF-8 bytes order as code points do. UTF-16 differs in one place only: a character of two units
  // (lead F0..F4) begins with D800..DBFF and so comes before U+E000..U+FFFF (lead EE, EF). After an
  // equal prefix the two bytes are both leads or both continuations (< C0).
  const unsigned char p = byte_of(*x);
  const unsigned char q = byte_of(*y);
  const bool p_in_pairs = p >= 0xF0;
  const bool q_in_pairs = q >= 0xF0;
  if (p_in_pairs != q_in_pairs && p >= 0xEE && q >= 0xEE) return p_in_pairs;
  return p < q;
}

}  // namespace idem
