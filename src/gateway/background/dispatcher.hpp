#pragma once

#include "gateway/gateway.hpp"
#include "loop/loop.hpp"

#include <idem/record.hpp>

#include <memory>

namespace idem::gateway {

/// Runs accepted requests later (protocol.md §3): claims due ones, sends each by the same exchange
/// as one that a client waits for, and settles it. Several nodes may do so; one of them claims each
/// request. Has a loop of its own, and one place for each request that runs.
///
/// A claim takes the request that has been due the longest, and does not mark it as dispatched: a
/// crash before the mark leaves a request that is provably not executed, and is claimed again when
/// its lease is over. A request whose route or tenant has no free place is put back for a moment, a
/// bounded number of them a second, so that it does not hold up others.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  /// A request was accepted: look now. Safe from any thread.
  virtual void wake() noexcept = 0;
  /// How long a client should wait before it looks again: as long as such requests took lately, or
  /// rest. Safe from any thread.
  virtual Millis look_again() const noexcept = 0;
  /// For requests claimed from now on. Safe from any thread.
  virtual void use(SharedSettings settings) = 0;
  /// Claims nothing more; running requests are finished. Safe from any thread.
  virtual void drain() = 0;
  /// Nothing runs, and after drain() nothing will. Safe from any thread.
  virtual bool drained() const noexcept = 0;
};

/// On this loop, which does not run yet; `shared` must outlive it.
std::unique_ptr<Dispatcher> make_dispatcher(Loop& loop, GatewayShared& shared,
                                            SharedSettings settings);

}  // namespace idem::gateway
