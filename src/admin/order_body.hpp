#pragma once

#include "admin/admin.hpp"
#include "admin/audit/audit_line.hpp"

#include <expected>
#include <string>

namespace idem::admin {

/// The body of an operator's order, and who decides by it.
struct OrderBody {
  http::ReceivedBody body;
  std::string decider;  ///< As the evidence log names it.
  AuditEntry signer;    ///< For the audit: who, in which role and from where.
};

/// Reads what every order has: JSON, and a name of its operator. The caller's login must still be
/// good when the body is there. The head of the request is gone behind it. `parts` and `caller`
/// outlive the task. The error is the answer. Loop's thread only.
Task<std::expected<OrderBody, WireAnswer>> read_order(AdminParts& parts, http::ServerStream& client,
                                                      const Caller& caller);

}  // namespace idem::admin
