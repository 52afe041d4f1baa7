#pragma once

#include "core/exchange/backoff.hpp"

#include <idem/health_limits.hpp>
#include <idem/limits.hpp>
#include <idem/log.hpp>
#include <idem/store.hpp>

#include <functional>
#include <memory>
#include <string>

/// A store wrapper that stops asking the store while it does not answer.
namespace idem {

struct BreakerRule {
  Breaker::Rule breaker{.failures = limits::store_failures,
                        .pause_first = limits::store_probe_first,
                        .pause_max = limits::store_probe_max,
                        .lasting = limits::store_failing_time};
  /// A call without a reply for so long opens the circuit.
  Millis silence_max = limits::store_silence_max;
  /// Between two tries to release what a late reply granted.
  Millis release_interval = limits::orphan_release_interval;
  /// Called on a thread of the store's when the circuit opens (`answers` false, and why) and when
  /// it closes. Must not call the store.
  std::function<void(bool answers, const std::string& why)> on_change{};
  /// Receives damaged records and leases that reserves ended, on a thread of the store's.
  LogSink log{};
};

struct StoreHealth {
  bool answers = true;
  std::uint64_t refused_at_once = 0;  ///< Calls refused without asking, since the opening.
  std::uint64_t damaged = 0;          ///< Calls that met a damaged record, likewise.
};

class CircuitBreakerStore : public Store {
 public:
  /// Safe from any thread.
  virtual StoreHealth health() const noexcept = 0;
};

/// Asks `inner` until it has failed (`unavailable`, `in_doubt`) as often and as long as the rule
/// says. Then the circuit opens: new work and reads are answered `unavailable` at once, and a probe
/// (a Find of no record; one at a time, with growing pauses) asks whether the store is back. Every
/// answer to the probe, also `refused`, closes the circuit. If a failed call would have written,
/// the circuit closes on trial only: the next failure opens it again at once and the pauses go on
/// growing, until a call has written.
///
/// One call without a reply for `silence_max` opens the circuit, too: a disk or a server that hangs
/// fails no call. Its asker gets `unavailable` for a read, a reserve or a claim, and `in_doubt` for
/// another call. If the reply to such a reserve or claim comes after all, the breaker releases the
/// attempt: nobody sends anything under it. While such a call would still write, a probe's success
/// does not close the circuit, and a repeat of the same call for the same attempt is refused. Calls
/// that may take long (VerbTraits) open nothing: they are answered so while the circuit is open,
/// and AdoptRoutes never is.
///
/// Otherwise the breaker never refuses a call that settles an attempt, an operator's decision, or
/// the repeat of a reserve or claim whose reply was lost, because only the store knows their
/// outcome (protocol.md §4). Their success closes the circuit.
std::unique_ptr<CircuitBreakerStore> make_circuit_breaker(std::unique_ptr<Store> inner,
                                                          BreakerRule rule = {});

}  // namespace idem
