#pragma once

#include "admin/audit/audit_chain.hpp"

#include <idem/limits.hpp>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// The parameters of a page of the audit.
struct AuditQuery {
  std::uint64_t after = 0;
  std::size_t limit = limits::list_page_default;
  std::optional<std::string> who{};
  std::optional<std::string> what{};
  std::optional<std::string> ref{};

  bool is_meant(const AuditEntry& entry) const {
    return (!who || entry.who == *who) && (!what || entry.what == *what) &&
           (!ref || entry.ref == *ref);
  }
};
/// `filters`: whether who, what and ref may be given. The error names the parameter.
std::expected<AuditQuery, std::string> parse_audit_query(std::string_view query, bool filters);
/// The parameter `expect` of a verification; none: it is not given.
std::expected<std::optional<ExpectedLine>, std::string> parse_verify_query(std::string_view query);

}  // namespace idem::admin
