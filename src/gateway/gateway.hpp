#pragma once

#include "gateway/settings.hpp"
#include "http/server.hpp"

#include <idem/store.hpp>

#include <atomic>
#include <memory>

namespace idem::gateway {

/// What the loops of one gateway share.
struct GatewayShared {
  const GatewaySettings settings;
  Store& store;
  http::SpillSpace& spill;
  /// Attempts whose settling write is still owed (§4); bounded, see limits::unsettled_attempts_max.
  std::atomic<std::size_t> unsettled{0};
};

/// The proxy on one loop: keyed requests by the exchange, all others passed through. `shared` must
/// outlive it. Requests are served on that loop's thread.
std::unique_ptr<http::Service> make_gateway(http::Loop& loop, GatewayShared& shared);

}  // namespace idem::gateway
