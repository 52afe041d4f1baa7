#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::admin {

/// The pairs of a query string (application/x-www-form-urlencoded), decoded and in order. A name
/// that is not in `known` is an error; the error never repeats a value, which may be a key.
std::expected<std::vector<std::pair<std::string, std::string>>, std::string> parse_query(
    std::string_view query, std::span<const std::string_view> known);

}  // namespace idem::admin
