#pragma once

#include <algorithm>
#include <string>
#include <string_view>

/// Text of ASCII, whatever the locale is: its letters and digits, and its parts between blanks and
/// marks. Pure, from any thread.
namespace idem {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr char lower_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr char upper_letter(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// Changes ASCII letters only.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_letter(c);
  return lower;
}

inline std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = upper_letter(c);
  return upper;
}

namespace detail {
bool equal_names(std::string_view a, std::string_view b) noexcept;
}

/// ASCII case-insensitive equality, as of field names.
inline bool equal_names(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && (a.empty() || (a[0] | 0x20) == (b[0] | 0x20)) &&
         detail::equal_names(a, b);
}

/// The value of a hexadecimal digit in either case; -1: it is none.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = lower_letter(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// Without the `blanks` around it; by default those that are no part of a field's value (RFC 9110
/// §5.5).
constexpr std::string_view trimmed(std::string_view text,
                                   std::string_view blanks = " \t") noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// Removes the text before `mark`, and the mark, from `text`; without a mark all of it. Returns
/// that text.
constexpr std::string_view take_until(std::string_view& text, char mark) noexcept {
  const auto taken = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

}  // namespace idem
