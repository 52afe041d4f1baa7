#pragma once

#include "admin/admin.hpp"

namespace idem::admin {

/// `POST /v1/store/rekey`: brings a page of records under the newest of encryption.secret_files.
/// All arguments outlive the task. Loop's thread only.
Task<WireAnswer> rekey(AdminParts& parts, http::ServerStream& client, const Caller& caller);

}  // namespace idem::admin
