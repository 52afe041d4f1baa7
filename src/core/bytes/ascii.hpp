#pragma once

#include <string>
#include <string_view>

/// Letters and digits of ASCII, whatever the locale is. Pure, from any thread.
namespace idem {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr char lower_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Changes ASCII letters only.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_letter(c);
  return lower;
}

/// The value of a hexadecimal digit in either case; -1: it is none.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = lower_letter(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace idem
