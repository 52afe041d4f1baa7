#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

/// Steps through a JSON text that was checked (check_json() or a canonical form); these functions
/// look for no errors.
namespace idem {

/// Behind the white space that begins at `at`, if any.
inline std::size_t behind_space(std::string_view text, std::size_t at) noexcept {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

/// Behind the string whose opening quote is at `at`.
inline std::size_t behind_string(std::string_view text, std::size_t at) noexcept {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

/// Behind the value that begins at `at`, in front of any white space.
inline std::size_t behind_value(std::string_view text, std::size_t at) noexcept {
  const auto ends_scalar = [](char c) {
    return c == ',' || c == '}' || c == ']' || static_cast<unsigned char>(c) <= ' ';
  };
  std::size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  } while (at < text.size() && (depth > 0 || !ends_scalar(text[at])));
  return at;
}

}  // namespace idem
