#pragma once

#include "core/exchange/problem.hpp"
#include "gateway/settings.hpp"

namespace idem::gateway {

/// What `/.well-known/idempotency` says: how keys are sent and how old a new one may be; route by
/// route, whether one is needed, what a duplicate hears, what becomes of each status and how long
/// an answer is kept; which problems there are. JSON, for clients and the people who write them; it
/// says nothing about scopes, upstreams or stores.
Answer policy_document(const GatewaySettings& settings);

}  // namespace idem::gateway
