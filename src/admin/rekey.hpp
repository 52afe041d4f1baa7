#pragma once

#include "admin/admin.hpp"

namespace idem::admin {

/// Where a run of pages goes on, and whose it is.
struct RekeyRun {
  std::string next;
  std::string decider;
};

/// `POST /v1/store/rekey`: brings a page of records under the newest of encryption.secret_files, or
/// under the key of its scope; behind the records the keys of scopes.
/// `run`: the last one of this process; a page that does not continue it is a decision of its own
/// for the audit. All arguments outlive the task. Loop's thread only.
Task<WireAnswer> rekey(AdminParts& parts, http::ServerStream& client, const Caller& caller,
                       std::optional<RekeyRun>& run);

}  // namespace idem::admin
