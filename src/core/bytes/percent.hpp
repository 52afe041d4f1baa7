#pragma once

#include "core/bytes/hex.hpp"

#include <optional>
#include <string>
#include <string_view>

/// Percent-encoding (RFC 3986 §2.1). Pure, from any thread.
namespace idem {

/// The byte that the escape at `at` stands for; -1: there is no percent sign with two hexadecimal
/// digits after it. `at` < text.size().
constexpr int escaped_byte(std::string_view text, std::size_t at) noexcept {
  if (text[at] != '%' || text.size() - at < 3) return -1;
  const int high = hex_value(text[at + 1]);
  const int low = hex_value(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

enum class Plus : bool { is_itself, is_blank };

/// The character at `at`, which moves to the last byte of an escape. As lenient servers read, a
/// broken escape stays as it is.
constexpr char decoded_at(std::string_view text, std::size_t& at, Plus plus) noexcept {
  if (const int byte = escaped_byte(text, at); byte >= 0) {
    at += 2;
    return static_cast<char>(byte);
  }
  return text[at] == '+' && plus == Plus::is_blank ? ' ' : text[at];
}

/// Decodes a part of a URL. None: it has a broken escape.
std::optional<std::string> percent_decoded(std::string_view text, Plus plus = Plus::is_itself);

inline void append_escaped_byte(std::string& out, char byte) {
  out += '%';
  append_hex(out, {&byte, 1}, capital_hex_digits);
}

/// Encodes all bytes but those that `is_plain`.
template <class IsPlain>
std::string percent_encoded(std::string_view text, IsPlain is_plain) {
  std::string out;
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
    } else {
      append_escaped_byte(out, c);
    }
  }
  return out;
}

/// Encodes `text` for a part of a URL: all bytes but the unreserved ones (RFC 3986 §2.3).
std::string percent_encoded(std::string_view text);

}  // namespace idem
