#pragma once

#include "gateway/keyed/keyed.hpp"

#include <idem/store.hpp>

namespace idem::gateway {

/// The reserve for a request: its ids and fingerprints under each live secret, also under the
/// former names of its route. `route` is one of `settings`.
Reserve make_reserve(const http::RequestHead& head, const KeyedRequest& request,
                     const Identity& identity, const GatewaySettings& settings, const Route& route);

/// Every id that a record of a request with this key may have, the one for a new record first.
std::vector<RecordId> possible_ids(const http::RequestHead& head, const Identity& identity,
                                   const GatewaySettings& settings, const Route& route,
                                   const std::string& scope, const std::string& key);

}  // namespace idem::gateway
