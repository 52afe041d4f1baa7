#pragma once

#include "gateway/keyed/keyed.hpp"

#include <idem/store.hpp>

namespace idem::gateway {

/// What the store is asked for a request: its name and fingerprints under each live secret, and
/// beside its operation's name those that its route had formerly. `route` is one of `settings`.
Reserve make_reserve(const http::RequestHead& head, const KeyedRequest& request,
                     const Identity& identity, const GatewaySettings& settings, const Route& route);

/// Every id under which a record of a request with this key may lie, the one for a new record
/// first.
std::vector<RecordId> possible_ids(const http::RequestHead& head, const Identity& identity,
                                   const GatewaySettings& settings, const Route& route,
                                   const std::string& scope, const std::string& key);

}  // namespace idem::gateway
