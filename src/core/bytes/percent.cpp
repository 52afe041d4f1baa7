#include "core/bytes/percent.hpp"

namespace idem {

std::optional<std::string> percent_decoded(std::string_view text, Plus plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && escaped_byte(text, i) < 0) return std::nullopt;
    out += decoded_at(text, i, plus);
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  return percent_encoded(text, [](char c) {
    const char lower = lower_letter(c);
    return is_digit(c) || (lower >= 'a' && lower <= 'z') || std::string_view("-._~").contains(c);
  });
}

}  // namespace idem
