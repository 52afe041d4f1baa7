#pragma once

#include "gateway/observation.hpp"
#include "gateway/settings.hpp"
#include "http/server.hpp"
#include "loop/offload.hpp"

#include <idem/store.hpp>

#include <atomic>
#include <memory>

namespace idem::gateway {

class AnswersUnderWay;
class Dispatcher;
class EarlyEvents;
class LookupLimit;
class SearchIndex;
class ShadowRoom;
class Waiters;

/// What the loops of one gateway share.
struct GatewayShared {
  Store& store;
  http::SpillSpace& spill;
  std::shared_ptr<Waiters> waiters;  ///< `store` notifies them of changes.
  Observing& observing;
  Dispatcher* dispatcher = nullptr;  ///< Set before the first request; outlives the last.
  std::shared_ptr<LookupLimit> lookups{};
  std::shared_ptr<EarlyEvents> early_events{};
  std::shared_ptr<AnswersUnderWay> answers{};
  std::shared_ptr<ShadowRoom> shadow{};
  SearchIndex* search = nullptr;  ///< Set before the first request; outlives the last.
  /// For bodies that would block a loop. Set before the first request; outlives the loops.
  Offload* digesting = nullptr;
  /// Connections that one loop serves at most: its scopes share them.
  std::size_t connections_per_loop = limits::connections_default;
  /// Attempts whose settling write is still owed (§4); bounded, see limits::unsettled_attempts_max.
  std::atomic<std::size_t> unsettled{0};
};

class Gateway : public http::Service {
 public:
  /// For the requests that begin from now on. Its loop's thread only.
  virtual void use(SharedSettings settings) = 0;
};

/// The proxy on one loop: keyed requests by the exchange, all others passed through. `shared` must
/// outlive it. Requests are served on that loop's thread. Upstream, its times and its TLS are
/// those of the first settings.
std::unique_ptr<Gateway> make_gateway(Loop& loop, GatewayShared& shared, SharedSettings settings);

}  // namespace idem::gateway
