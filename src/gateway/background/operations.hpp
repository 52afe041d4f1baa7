#pragma once

#include "gateway/auth/authority.hpp"
#include "gateway/gateway.hpp"

namespace idem::gateway {

/// True for a path of the status resource, whether or not there is such an operation.
bool is_operation_path(std::string_view path);

/// Answers GET and HEAD of `/.idem/operations/{ref}` with the operation's state, to its own scope
/// only, at once or when it has ended (`Prefer: wait=N`); and of
/// `/.idem/operations/{ref}/response` with the answer itself, as a retry would get it. These are
/// two resources, so that a client cannot confuse the stored answer's status with that of the
/// look-up.
Task<void> serve_operation(http::ServerStream& client, GatewayShared& shared, Authority& authority,
                           const GatewaySettings& settings);

}  // namespace idem::gateway
