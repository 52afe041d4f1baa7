#pragma once

#include "admin/login/tokens.hpp"

#include <span>
#include <string>
#include <string_view>

namespace idem::admin {

/// The names and roles of tokens.
std::string tokens_page(std::span<const TokenEntry> tokens);
/// A token that was just made.
std::string token_page(std::string_view name, Role role, std::string_view token);

}  // namespace idem::admin
