#pragma once

#include "gateway/auth/authority.hpp"
#include "gateway/gateway.hpp"

namespace idem::gateway {

/// True for a path of the status resource, whether or not there is such an operation.
bool is_operation_path(std::string_view path);

/// Answers GET and HEAD of `/.idem/operations/{ref}`: how the operation stands, to its own scope
/// only, at once or when it has ended (`Prefer: wait=N`); and of
/// `/.idem/operations/{ref}/response`: the answer itself, as a retry would hear it. The two are
/// apart so that the status of an answer that was stored is never taken for the status of having
/// looked it up.
Task<void> serve_operation(http::ServerStream& client, GatewayShared& shared, Authority& authority,
                           const GatewaySettings& settings);

}  // namespace idem::gateway
