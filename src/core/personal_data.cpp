#include "core/personal_data.hpp"

#include <array>
#include <cstddef>

namespace idem {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_separator(char c) noexcept { return c == ' ' || c == '-' || c == '.'; }

/// Something before the @, and a name with a dot inside behind it.
bool has_address(std::string_view key) noexcept {
  for (std::size_t at = key.find('@'); at != std::string_view::npos; at = key.find('@', at + 1)) {
    if (at == 0 || !is_alphanumeric(key[at - 1])) continue;
    std::size_t end = at + 1;
    bool has_dot = false;
    while (end < key.size() && (is_alphanumeric(key[end]) || key[end] == '-' || key[end] == '.')) {
      const bool inside = key[end] == '.' && end > at + 1 && end + 1 < key.size();
      has_dot = has_dot || (inside && is_alphanumeric(key[end + 1]));
      ++end;
    }
    if (has_dot) return true;
  }
  return false;
}

/// A run of digits in which single separators may stand.
struct Digits {
  static constexpr std::size_t most = 20;
  std::array<int, most> value{};
  std::size_t count = 0;
};

Digits digits_at(std::string_view key, std::size_t at) noexcept {
  Digits digits;
  for (; at < key.size() && digits.count < Digits::most; ++at) {
    if (is_digit(key[at])) {
      digits.value[digits.count++] = key[at] - '0';
    } else if (!is_separator(key[at]) || at + 1 >= key.size() || !is_digit(key[at + 1])) {
      break;
    }
  }
  return digits;
}

// ITU-T E.164: 15 digits at most; the shortest in use have 8 with their country.
bool is_phone(const Digits& digits) noexcept {
  return digits.count >= 8 && digits.count <= 15 && digits.value[0] != 0;
}

// ISO/IEC 7812: 13 to 19 digits with a check digit. Those of cards begin with 2 to 6, which leaves
// out what counts milliseconds.
bool is_card(const Digits& digits) noexcept {
  if (digits.count < 13 || digits.count > 19) return false;
  if (digits.value[0] < 2 || digits.value[0] > 6) return false;
  int sum = 0;
  for (std::size_t i = 0; i < digits.count; ++i) {
    const int digit = digits.value[digits.count - 1 - i];
    const int doubled = digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
    sum += i % 2 == 0 ? digit : doubled;
  }
  return sum % 10 == 0;
}

}  // namespace

bool looks_personal(std::string_view key) noexcept {
  if (has_address(key)) return true;
  for (std::size_t at = 0; at < key.size(); ++at) {
    const bool begins = at == 0 || !is_alphanumeric(key[at - 1]);
    if (!begins) continue;
    if (key[at] == '+' && is_phone(digits_at(key, at + 1))) return true;
    const bool goes_on = at >= 2 && is_separator(key[at - 1]) && is_digit(key[at - 2]);
    if (is_digit(key[at]) && !goes_on && is_card(digits_at(key, at))) return true;
  }
  return false;
}

}  // namespace idem
