#pragma once

#include "core/exchange/problem.hpp"
#include "gateway/settings.hpp"

namespace idem::gateway {

/// The JSON of `/.well-known/idempotency`, for clients and the people who write them: how keys are
/// sent and how old a new one may be; for each route, whether a key is needed, how a duplicate is
/// answered, which statuses are stored and how long an answer is kept; which problems there are.
/// Nothing about scopes, upstreams or stores.
WireAnswer policy_document(const GatewaySettings& settings);

}  // namespace idem::gateway
