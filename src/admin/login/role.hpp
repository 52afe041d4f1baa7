#pragma once

#include "core/bytes/digests.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// What a caller of the admin API may do. Each role may do what the ones before it may.
enum class Role : std::uint8_t {
  viewer,    ///< Sees states and counts; no bodies, and searches by no key.
  support,   ///< Finds records by their keys, and reads answers and messages.
  operates,  ///< Decides, and makes and revokes tokens. Its name is "operator".
};

/// "viewer", "support" or "operator".
std::string_view name_of(Role role) noexcept;
/// None: no role has this name.
std::optional<Role> parse_role(std::string_view name) noexcept;

/// Whether a page has the bytes of clients, upstreams and providers, or null in their place.
enum class Bodies : std::uint8_t { shown, withheld };
constexpr Bodies bodies_for(Role role) noexcept {
  return role < Role::support ? Bodies::withheld : Bodies::shown;
}

/// Whether a name may stand in the evidence log: 1 to
/// limits::operator_name_bytes_max visible characters of ASCII.
bool is_operator_name(std::string_view name) noexcept;
/// The same for a line of the tokens file, which must not look like a comment.
bool is_token_name(std::string_view name) noexcept;

/// Who sent a request to the admin API.
struct Caller {
  /// Empty: the login proves a role and no person, as the operator's token of the gateway does.
  std::string name{};
  Role role = Role::viewer;
  /// Of the token that was sent, because it may be revoked while a body is still coming.
  std::optional<Digest> token{};
  /// What proved it, for the audit: "operator_token", "token", "proxy" or "certificate".
  std::string_view login{};
  bool in_session = false;  ///< The session of a browser stood for the token.
};

}  // namespace idem::admin
