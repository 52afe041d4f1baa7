#include "cli/commands/tables.hpp"

#include <algorithm>
#include <cstdio>

namespace idem::cli {

using json::Value;

std::string text_of(const Value* value) {
  if (value == nullptr) return "-";
  if (const auto* text = std::get_if<std::string>(&value->is)) {
    return text->empty() ? "-" : printable(*text);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value->is)) return std::to_string(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value->is)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value->is)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value->is)) return *flag ? "yes" : "no";
  return "-";
}

const json::Array& items_of(const Value* value) {
  static const json::Array none;
  const auto* items = value != nullptr ? std::get_if<json::Array>(&value->is) : nullptr;
  return items != nullptr ? *items : none;
}

void print_rows(const Rows& rows) {
  std::fputs(pairs_text(rows, shown_on_stdout()).c_str(), stdout);
}

void print_table(const Rows& rows, const std::vector<std::string_view>& may_shrink) {
  std::fputs(table_text(rows, may_shrink, shown_on_stdout()).c_str(), stdout);
}

void print_json(const std::string& json) {
  std::fwrite(json.data(), 1, json.size(), stdout);
  if (!json.ends_with('\n')) std::fputc('\n', stdout);
}

std::string printable(std::string_view text) {
  std::string shown(text);
  std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  // C1 controls, as UTF-8 spells them: C2 80 to C2 9F.
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) {
    const auto next = static_cast<unsigned char>(shown[i + 1]);
    if (static_cast<unsigned char>(shown[i]) == 0xC2 && next >= 0x80 && next < 0xA0) {
      shown.replace(i, 2, "?");
    }
  }
  // Marks that change the order in which a terminal shows a line: U+061C, U+200E and U+200F, U+202A
  // to U+202E, U+2066 to U+2069.
  for (const std::string_view mark :
       {"\xD8\x9C", "\xE2\x80\x8E", "\xE2\x80\x8F", "\xE2\x80\xAA", "\xE2\x80\xAB", "\xE2\x80\xAC",
        "\xE2\x80\xAD", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x81\xA7", "\xE2\x81\xA8",
        "\xE2\x81\xA9"}) {
    for (auto at = shown.find(mark); at != shown.npos; at = shown.find(mark, at)) {
      shown.replace(at, mark.size(), "?");
    }
  }
  return shown;
}

}  // namespace idem::cli
