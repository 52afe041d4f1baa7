#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::admin {

/// A query string (application/x-www-form-urlencoded), decoded and in its order. One with a name
/// that is none of `known` is refused; the error never repeats a value, which may be a key.
std::expected<std::vector<std::pair<std::string, std::string>>, std::string> parse_query(
    std::string_view query, std::span<const std::string_view> known);

}  // namespace idem::admin
