#include "admin/query.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <optional>

namespace idem::admin {
namespace {

std::optional<std::string> decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

std::string enumerated(std::span<const std::string_view> names) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) all += i + 1 == names.size() ? " and " : ", ";
    all += names[i];
  }
  return all;
}

}  // namespace

std::expected<std::vector<std::pair<std::string, std::string>>, std::string> parse_query(
    std::string_view query, std::span<const std::string_view> known) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    auto part = take_until(query, '&');
    auto name = decode(take_until(part, '='));
    auto value = decode(part);
    if (!name || std::ranges::find(known, *name) == known.end()) {
      return std::unexpected("a parameter is none of " + enumerated(known));
    }
    if (!value) return std::unexpected(*name + ": a % without two hexadecimal digits behind it");
    if (value->contains('\0')) return std::unexpected(*name + ": has a zero byte in it");
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

}  // namespace idem::admin
