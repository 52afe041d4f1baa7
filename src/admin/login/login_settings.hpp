#pragma once

#include "admin/login/approval_settings.hpp"
#include "admin/login/role.hpp"
#include "http/network.hpp"

#include <string>
#include <vector>

namespace idem::admin {

/// Whose requests have a role: a proxy's user by name, its group as "group:NAME", a certificate's
/// holder as "uri:URI" or "subject:SUBJECT", or "*" for everybody whom one of them names.
struct RoleGrant {
  Role role{};
  std::string to;
};

/// Which clients may ask /livez, /readyz and /metrics without a login.
enum class Probes : std::uint8_t { loopback, everywhere, nowhere };

struct LoginSettings {
  std::string tokens_file{};  ///< Empty: no such tokens.
  /// The file of the operator's token that the process makes; empty: it makes none.
  std::string operator_token_file{};
  /// The field in which a trusted proxy names its user; empty: no proxy does.
  std::string identity_field{};
  std::string groups_field{};  ///< Names separated by commas; empty: there are no groups.
  std::vector<http::Network> trusted_proxies{};
  bool reads_certificates = false;  ///< A client's verified certificate names its holder.
  std::vector<RoleGrant> roles{};   ///< For names of proxies and certificates; the highest counts.
  Probes probes = Probes::loopback;
  ApprovalSettings approvals{};
};

}  // namespace idem::admin
