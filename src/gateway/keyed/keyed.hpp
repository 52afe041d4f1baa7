#pragma once

#include "gateway/auth/authority.hpp"
#include "gateway/background/search_index.hpp"
#include "gateway/gateway.hpp"
#include "gateway/keyed/replay_cache.hpp"
#include "gateway/keyed/request_parts.hpp"
#include "http/upstream_pool.hpp"

#include <string>

namespace idem::gateway {

/// A keyed request, validated: its scope, key and body.
struct KeyedRequest {
  std::string scope;
  std::string operation;
  std::string key;
  http::ReceivedBody body;
  Observation seen;
  Authority* authority = nullptr;  ///< Checked, and again after a wait. Outlives serving.
  /// Under which a replay may be kept in `replays`.
  std::optional<ReplayCache::Name> replay_name{};
  ReplayCache* replays = nullptr;
  /// Why this key may begin no new record; an existing one still answers.
  std::optional<Problem> new_key_rejection{};
  /// Values by which its record is found, of a request whose body is not kept.
  std::vector<Findable> findable{};

  /// For what goes on behind the answer.
  SharedSettings settings{};

  /// Views into this.
  RequestParts parts() const noexcept {
    return {scope, operation, key, body.bytes(), new_key_rejection ? &*new_key_rejection : nullptr};
  }
};

/// Reserve, dispatch, settle, answer: drives one exchange to its end and answers the client exactly
/// once. A settling write that is still owed goes on as a task of the loop. Must outlive the task:
/// `settings`, `route` and `request`, whose parts are moved from.
Task<void> serve_keyed(http::ServerStream& client, http::UpstreamPool& pool, GatewayShared& shared,
                       const GatewaySettings& settings, const Route& route, KeyedRequest& request);

}  // namespace idem::gateway
