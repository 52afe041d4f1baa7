#pragma once

#include "admin/admin.hpp"
#include "admin/audit/audit_line.hpp"

#include <expected>
#include <optional>
#include <string>

namespace idem::admin {

/// Of an order that waited for approvals and has them.
struct Approved {
  std::string id;
  std::string seen;      ///< What the order was about, as it was when it was given.
  StoreTime given_at{};  ///< As in ApprovalRequest.
  std::string by;        ///< The others who approved.
};

/// The body of an operator's order, and who decides by it.
struct OrderBody {
  std::string body;
  std::string decider;  ///< As the evidence log names it.
  AuditEntry signer;    ///< For the audit: who, in which role and from where.
  std::optional<Approved> approved{};

  /// What the reason of an approved order ends with; empty: it needed no approval.
  std::string note() const {
    if (!approved) return "";
    return " (approved by " + approved->by + ", approval " + approved->id + ")";
  }
};

/// Reads what every order has: JSON, and a name of its operator. The caller's login must still be
/// good when the body is there. The head of the request is gone behind it. `parts` and `caller`
/// outlive the task. The error is the answer. Loop's thread only.
Task<std::expected<OrderBody, WireAnswer>> read_order(AdminParts& parts, http::ServerStream& client,
                                                      const Caller& caller);

}  // namespace idem::admin
