#pragma once

#include "core/problem.hpp"
#include "gateway/settings.hpp"

namespace idem::gateway {

/// What `/.well-known/idempotency` says: how keys are sent and, route by route, whether one is
/// needed, what a duplicate hears and how long an answer is kept. JSON, for clients and the people
/// who write them; it says nothing about scopes, upstreams or stores.
Answer policy_document(const GatewaySettings& settings);

}  // namespace idem::gateway
