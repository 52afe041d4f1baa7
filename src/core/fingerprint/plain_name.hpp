#pragma once

#include <span>
#include <string_view>

namespace idem {

/// True where the letters and digits of a field's name, in lower case, are one of `names`: a server
/// may drop all others, or write `_` for `-` (as http::alike()). No name has more than 24 of them.
bool is_plain_name(std::string_view name, std::span<const std::string_view> names) noexcept;

}  // namespace idem
