#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace idem {

/// Names of fields by their letters and digits alone, in lower case; each begins with a letter.
class PlainNames {
 public:
  explicit constexpr PlainNames(std::span<const std::string_view> names) noexcept : names_(names) {
    for (const std::string_view name : names) first_letters_ |= bit_of(name.front());
  }

  /// True where the letters and digits of a field's name, in lower case, are one of them: a server
  /// may drop all others, or write `_` for `-` (as http::alike()).
  bool has(std::string_view name) const noexcept {
    const char first = name.empty() ? '\0' : static_cast<char>(name.front() | 0x20);
    const bool is_letter = first >= 'a' && first <= 'z';
    // Most names begin with another letter already.
    return (!is_letter || (first_letters_ & bit_of(first)) != 0) && has_same_letters(name);
  }

 private:
  static constexpr std::uint32_t bit_of(char letter) noexcept { return 1U << (letter - 'a'); }
  bool has_same_letters(std::string_view name) const noexcept;

  std::span<const std::string_view> names_;
  std::uint32_t first_letters_ = 0;
};

}  // namespace idem
