#include "core/percent.hpp"

#include <charconv>

namespace idem {

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    unsigned value = 0;
    const char* const from = text.data() + i + 1;
    const auto [end, error] = std::from_chars(from, from + 2, value, 16);
    if (error != std::errc() || end != from + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

}  // namespace idem
