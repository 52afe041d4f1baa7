#pragma once

#include "admin/admin.hpp"

namespace idem::admin {

/// `POST /v1/store/shred`: deletes the keys of a scope, in two steps (docs/encryption.md). The
/// first makes the key that seals from now on; the second, which names it and comes when no process
/// seals under an older one any more, deletes those before it. All arguments outlive the task.
/// Loop's thread only.
Task<WireAnswer> shred(AdminParts& parts, http::ServerStream& client, const Caller& caller);

}  // namespace idem::admin
