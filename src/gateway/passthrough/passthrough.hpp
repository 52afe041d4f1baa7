#pragma once

#include "gateway/gateway.hpp"
#include "gateway/passthrough/onlooker.hpp"
#include "http/upstream_pool.hpp"

namespace idem::gateway {

/// Passes an unkeyed request through in both directions, piece by piece: no store, no buffering of
/// whole bodies. Sends nothing twice once the upstream accepted a byte, except a safe request
/// without a body whose pooled connection had died (RFC 9110 §9.2.2). On a shadow route the
/// key's field goes on as it came. `onlooker`, unless null, outlives the task.
Task<void> pass_through(http::ServerStream& client, http::UpstreamPool& pool,
                        const GatewaySettings& settings, const Route& route, Observer& observer,
                        Onlooker* onlooker = nullptr);

}  // namespace idem::gateway
