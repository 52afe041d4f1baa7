#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace idem::admin {

struct Paging {
  std::size_t limit = 0;
  std::string cursor{};  ///< Empty: from the beginning.
};

/// The query of a list that has `limit` and one parameter that says where to go on, named `cursor`.
/// The error names the parameter and says what to write.
std::expected<Paging, std::string> parse_paging(std::string_view query, std::string_view cursor,
                                                std::size_t otherwise, std::size_t most);

std::expected<std::size_t, std::string> whole_number(const std::string& text, std::size_t most);

}  // namespace idem::admin
