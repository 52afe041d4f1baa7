#pragma once

#include "http/characters.hpp"

#include <string_view>

namespace idem::http {

namespace detail {
bool alike(std::string_view a, std::string_view b) noexcept;
}

inline bool is_letter_or_digit(char c) noexcept { return is_char(c, char_letter | char_digit); }

/// True for two field names that a server may confuse, because it writes `_` for `-` or drops all
/// but letters and digits (CGI's HTTP_X_TENANT_ID is both X-Tenant-Id and X_Tenant_Id).
inline bool alike(std::string_view a, std::string_view b) noexcept {
  constexpr std::uint8_t counts = char_letter | char_digit;
  // Most names differ in the first letter already.
  if (!a.empty() && !b.empty() && is_char(a[0], counts) && is_char(b[0], counts) &&
      (a[0] | 0x20) != (b[0] | 0x20)) {
    return false;
  }
  return detail::alike(a, b);
}

}  // namespace idem::http
