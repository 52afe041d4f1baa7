#include "cli/terminal/text_width.hpp"

#include "core/bytes/utf8.hpp"

#include <clocale>
#include <cstdint>
#include <cwchar>
#include <vector>

namespace idem::cli {
namespace {

struct Character {
  std::string_view bytes{};
  std::size_t columns = 1;
};

char32_t code_point(std::string_view bytes) {
  constexpr std::uint8_t lead_mask[] = {0x7F, 0x1F, 0x0F, 0x07};
  auto value =
      static_cast<char32_t>(static_cast<std::uint8_t>(bytes.front()) & lead_mask[bytes.size() - 1]);
  for (const char c : bytes.substr(1)) {
    value = (value << 6U) | (static_cast<std::uint8_t>(c) & 0x3FU);
  }
  return value;
}

/// The C library knows the widths by Unicode, in a locale that has it. Parsers of this process rely
/// on the locale "C", so only the calls below see this one. Null: it is not there.
locale_t unicode() {
  static const locale_t made = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return made;
}

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> all;
  all.reserve(text.size());
  const locale_t before = unicode() != nullptr ? ::uselocale(unicode()) : nullptr;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_sequence(text, at);
    Character one{text.substr(at, size == 0 ? 1 : size)};
    if (size > 0 && before != nullptr) {
      const int columns = ::wcwidth(static_cast<wchar_t>(code_point(one.bytes)));
      if (columns >= 0) one.columns = static_cast<std::size_t>(columns);
    }
    at += one.bytes.size();
    all.push_back(one);
  }
  if (before != nullptr) ::uselocale(before);
  return all;
}

std::size_t columns_of(const std::vector<Character>& characters) {
  std::size_t sum = 0;
  for (const auto& one : characters) sum += one.columns;
  return sum;
}

}  // namespace

std::size_t columns_of(std::string_view text) { return columns_of(characters_of(text)); }

std::string shortened(std::string_view text, std::size_t columns) {
  const auto characters = characters_of(text);
  if (columns_of(characters) <= columns) return std::string(text);
  if (columns == 0) return {};
  const std::size_t head_max = columns / 2;
  const std::size_t tail_max = columns - head_max - 1;
  std::string head;
  std::size_t used = 0;
  for (const auto& one : characters) {
    used += one.columns;
    if (used > head_max) break;
    head += one.bytes;
  }
  // The tail begins at a character that has columns, so that it begins with no mark.
  std::string tail;
  std::string marked;
  used = 0;
  for (auto one = characters.rbegin(); one != characters.rend(); ++one) {
    used += one->columns;
    if (used > tail_max) break;
    marked.insert(0, one->bytes);
    if (one->columns == 0) continue;
    tail.insert(0, marked);
    marked.clear();
  }
  return head + "…" + tail;
}

}  // namespace idem::cli
