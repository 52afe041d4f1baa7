#pragma once

#include "gateway/gateway.hpp"

namespace idem::gateway {

/// Where providers send their events: the path, and behind it the provider's name.
inline constexpr std::string_view events_path = "/.idem/events/";

/// Takes one event of a provider (protocol.md §19): who signed it, what it says of which record,
/// and the store's verdict. 2xx is told once that is durable; 5xx makes the provider send it again.
/// Nothing of a record is told to whoever sends.
Task<void> serve_event(http::ServerStream& client, GatewayShared& shared, Observer& observer,
                       SharedSettings settings);

}  // namespace idem::gateway
