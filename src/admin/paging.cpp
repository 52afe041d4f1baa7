#include "admin/paging.hpp"

#include "admin/query.hpp"

#include <array>
#include <charconv>

namespace idem::admin {

std::expected<std::size_t, std::string> whole_number(const std::string& text, std::size_t most) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end && number <= most) return number;
  return std::unexpected("must be a whole number up to " + std::to_string(most));
}

std::expected<Paging, std::string> parse_paging(std::string_view query, std::string_view cursor,
                                                std::size_t otherwise, std::size_t most) {
  const std::array known{std::string_view("limit"), cursor};
  const auto pairs = parse_query(query, known);
  if (!pairs) return std::unexpected(pairs.error());
  Paging paging{.limit = otherwise};
  for (const auto& [name, value] : *pairs) {
    if (name == cursor) {
      paging.cursor = value;
      continue;
    }
    const auto limit = whole_number(value, most);
    if (!limit) return std::unexpected("limit: " + limit.error());
    if (*limit == 0) return std::unexpected("limit: must be 1 at least");
    paging.limit = *limit;
  }
  return paging;
}

}  // namespace idem::admin
