#pragma once

#include "message.hpp"
#include "world.hpp"

namespace provider {

/// What tests ask of the provider itself: /ledger, /held, /release, /faults, and the readings of
/// /inbox and /webhooks. False when it is none of these.
asio::awaitable<bool, Executor> control(const Request& request, World& world, Reply& reply);

}  // namespace provider
