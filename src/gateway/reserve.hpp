#pragma once

#include "gateway/keyed.hpp"

#include <idem/store.hpp>

namespace idem::gateway {

/// What the store is asked for a request: its name and fingerprints under each live secret, and
/// beside its operation's name those that its route had formerly. `route` is one of `settings`.
Reserve make_reserve(const http::RequestHead& head, const KeyedRequest& request,
                     const Identity& identity, const GatewaySettings& settings, const Route& route);

}  // namespace idem::gateway
