#include "admin/login/role.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::admin {

std::string_view name_of(Role role) noexcept {
  switch (role) {
    case Role::viewer:
      return "viewer";
    case Role::support:
      return "support";
    case Role::operates:
      return "operator";
  }
  return "viewer";
}

std::optional<Role> parse_role(std::string_view name) noexcept {
  for (const Role role : {Role::viewer, Role::support, Role::operates}) {
    if (name == name_of(role)) return role;
  }
  return std::nullopt;
}

bool is_operator_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= limits::operator_name_bytes_max &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7F; });
}

bool is_token_name(std::string_view name) noexcept {
  return is_operator_name(name) && !name.starts_with('#');
}

}  // namespace idem::admin
