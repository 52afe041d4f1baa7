#pragma once

#include "admin/admin.hpp"

namespace idem::admin {

/// `/v1/session` and the paths under it: how a browser logs in to the console. Loop's thread only.
class SessionApi {
 public:
  /// `parts` outlives it.
  explicit SessionApi(AdminParts& parts) : parts_(parts) {}

  /// For a caller with a login.
  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);
  /// POST /v1/session, for everybody: begins a session for a token, or for a code of
  /// /v1/session/codes.
  Task<WireAnswer> begin(http::ServerStream& client);

 private:
  AdminParts& parts_;
};

}  // namespace idem::admin
