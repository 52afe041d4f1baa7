#pragma once

#include "message.hpp"
#include "world.hpp"

namespace provider {

/// Answers requests of tests: /ledger, /held, /release, /faults, and reads of /inbox and /webhooks.
/// False if it is none of these.
asio::awaitable<bool, Executor> control(const Request& request, World& world, Reply& reply);

}  // namespace provider
