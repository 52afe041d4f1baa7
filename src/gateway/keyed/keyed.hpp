#pragma once

#include "gateway/auth/authority.hpp"
#include "gateway/gateway.hpp"
#include "gateway/keyed/replay_cache.hpp"
#include "http/upstream_pool.hpp"

#include <string>

namespace idem::gateway {

/// A keyed request, validated: who asks, under which key, with which body.
struct KeyedRequest {
  std::string scope;
  std::string operation;
  std::string key;
  http::ReceivedBody body;
  Observation seen;
  Authority* authority = nullptr;  ///< Has said yes; asked again after a wait. Outlives serving.
  std::optional<ReplayCache::Asked> asked{};  ///< Under which a replay may be kept in `replays`.
  ReplayCache* replays = nullptr;
  /// Why this key may begin no record; one that there is, is answered from.
  std::optional<Problem> new_key_rejection{};
};

/// Reserve, dispatch, settle, answer: drives one exchange to its end and answers the client exactly
/// once. What is still owed to the store then goes on as a task of the loop.
/// Must outlive the task: `settings`, `route` and `request`, whose parts are moved from.
Task<void> serve_keyed(http::ServerStream& client, http::UpstreamPool& pool, GatewayShared& shared,
                       const GatewaySettings& settings, const Route& route, KeyedRequest& request);

}  // namespace idem::gateway
