#pragma once

#include "gateway/gateway.hpp"

namespace idem::gateway {

/// Where providers send their events: the path, and behind it the provider's name.
inline constexpr std::string_view events_path = "/.idem/events/";

/// Serves one event of a provider (protocol.md §19): checks its signature, finds its record and
/// applies it. Answers 2xx once the result is durable; a 5xx makes the provider send it again. No
/// answer contains anything of a record.
Task<void> serve_event(http::ServerStream& client, GatewayShared& shared, Observer& observer,
                       SharedSettings settings);

}  // namespace idem::gateway
