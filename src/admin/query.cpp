#include "admin/query.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"

#include <algorithm>

namespace idem::admin {
namespace {

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
    auto name = percent_decoded(take_until(part, '='), Plus::is_blank);
    auto value = percent_decoded(part, Plus::is_blank);
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
