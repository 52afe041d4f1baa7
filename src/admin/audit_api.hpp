#pragma once

#include "admin/admin.hpp"
#include "admin/audit/audit_chain.hpp"
#include "admin/audit_query.hpp"

#include <idem/journal.hpp>

namespace idem::admin {

/// `/v1/audit` and the paths under it. Only reads. Loop's thread only.
class AuditApi {
 public:
  /// `parts` outlives it.
  explicit AuditApi(AdminParts& parts) : parts_(parts) {}

  Task<WireAnswer> answer_to(http::ServerStream& client);

 private:
  Task<WireAnswer> list(AuditQuery query);
  Task<WireAnswer> lines(AuditQuery query);
  Task<WireAnswer> verify(std::optional<ExpectedLine> expected);
  Task<std::expected<ReadLines::Reply, StoreError>> read(std::uint64_t after, std::size_t limit);

  AdminParts& parts_;
};

}  // namespace idem::admin
