#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

/// What a byte may be in an HTTP message: one table, so that a scan costs one load per byte.
namespace idem::http {

inline constexpr std::uint8_t char_token = 1;     ///< RFC 9110 §5.6.2.
inline constexpr std::uint8_t char_target = 2;    ///< What a request target may hold here.
inline constexpr std::uint8_t char_reg_name = 4;  ///< RFC 3986 §3.2.2 but "," and "%".
inline constexpr std::uint8_t char_digit = 8;
inline constexpr std::uint8_t char_hex = 16;
inline constexpr std::uint8_t char_control = 32;  ///< Below 0x20 or 0x7F, but never HTAB.
inline constexpr std::uint8_t char_letter = 64;

namespace detail {

constexpr bool is_one_of(int c, const char* set) {
  for (; *set != '\0'; ++set) {
    if (c == *set) return true;
  }
  return false;
}

constexpr std::array<std::uint8_t, 256> make_char_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool hex = digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    unsigned bits = 0;
    if (digit || letter || is_one_of(c, "!#$%&'*+-.^_`|~")) bits |= char_token;
    // Wider than RFC 3986: clients send `"<>\^`{|}`, every server accepts them, and none of them
    // ends a target. A fragment never travels, so "#" can only mislead the next hop.
    if (c > 0x20 && c < 0x7F && c != '#') bits |= char_target;
    // A comma is legal in a reg-name and has no use there but joining two Host fields into one.
    if (digit || letter || is_one_of(c, "-._~!$&'()*+;=")) bits |= char_reg_name;
    if (digit) bits |= char_digit;
    if (hex) bits |= char_hex;
    if ((c < 0x20 && c != '\t') || c == 0x7F) bits |= char_control;
    if (letter) bits |= char_letter;
    classes[static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(bits);
  }
  return classes;
}

}  // namespace detail

inline constexpr std::array<std::uint8_t, 256> char_classes = detail::make_char_classes();

inline bool is_char(char c, std::uint8_t classes) noexcept {
  return (char_classes[static_cast<unsigned char>(c)] & classes) != 0;
}

inline bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

/// The first byte in [at, end) that is not of `classes`, or `end`.
inline const char* skip_chars(const char* at, const char* end, std::uint8_t classes) noexcept {
  while (end - at >= 4) {
    if (!is_char(at[0], classes)) return at;
    if (!is_char(at[1], classes)) return at + 1;
    if (!is_char(at[2], classes)) return at + 2;
    if (!is_char(at[3], classes)) return at + 3;
    at += 4;
  }
  while (at != end && is_char(*at, classes)) ++at;
  return at;
}

inline const char* skip_blanks(const char* at, const char* end) noexcept {
  while (at != end && is_blank(*at)) ++at;
  return at;
}

/// The first control byte (CR and LF among them, HTAB not) in [at, end), or `end`. Eight bytes at a
/// time: values are the bulk of a head, and nearly all of them are clean.
inline const char* find_control(const char* at, const char* end) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t highs = 0x8080808080808080;
  while (end - at >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    const std::uint64_t deleted = word ^ (ones * 0x7F);
    // A high bit is left for a byte below 0x20 and for 0x7F. The lowest is one of these for sure,
    // if perhaps HTAB; a higher one may come from a neighbour's borrow, so the table decides.
    const std::uint64_t low = (word - ones * 0x20) & ~word;
    const std::uint64_t found = (((deleted - ones) & ~deleted) | low) & highs;
    if (found != 0) {
      int i = std::endian::native == std::endian::little ? std::countr_zero(found) / 8 : 0;
      for (; i < 8; ++i) {
        if (is_char(at[i], char_control)) return at + i;
      }
    }
    at += 8;
  }
  while (at != end && !is_char(*at, char_control)) ++at;
  return at;
}

}  // namespace idem::http
