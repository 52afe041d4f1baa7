#pragma once

#include "gateway/gateway.hpp"
#include "loop/loop.hpp"

#include <idem/record.hpp>

#include <memory>

namespace idem::gateway {

/// Runs what was accepted to be run later (protocol.md §3): claims due requests, sends each with
/// the care of one that a client waits for, settles it. Several nodes may; each request is claimed
/// by one. Has a loop of its own, and one place for each request that runs.
///
/// A claim takes whatever has been due the longest, and does not mark it as dispatched: a crash
/// before the mark leaves a request that is provably not executed, and is claimed again when its
/// lease is over. One whose route or tenant has all its places taken is put back for a moment, a
/// bounded number of them a second, so that it does not stand in front of others.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  /// Something was accepted: look now. Safe from any thread.
  virtual void wake() noexcept = 0;
  /// When a client may look again at what runs here: as long as such requests took lately, or rest.
  /// Safe from any thread.
  virtual Millis look_again() const noexcept = 0;
  /// For what is claimed from now on. Safe from any thread.
  virtual void use(SharedSettings settings) = 0;
  /// Claims nothing more; what runs is finished. Safe from any thread.
  virtual void drain() = 0;
  /// Nothing runs, and after drain() nothing will. Safe from any thread.
  virtual bool drained() const noexcept = 0;
};

/// On this loop, which does not run yet; `shared` must outlive it.
std::unique_ptr<Dispatcher> make_dispatcher(Loop& loop, GatewayShared& shared,
                                            SharedSettings settings);

}  // namespace idem::gateway
