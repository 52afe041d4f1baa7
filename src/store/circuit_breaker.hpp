#pragma once

#include "core/exchange/backoff.hpp"

#include <idem/limits.hpp>
#include <idem/log.hpp>
#include <idem/store.hpp>

#include <functional>
#include <memory>
#include <string>

/// A store that is left alone while it does not answer.
namespace idem {

struct BreakerRule {
  Breaker::Rule breaker{.failures = limits::store_failures,
                        .pause_first = limits::store_probe_first,
                        .pause_max = limits::store_probe_max,
                        .lasting = limits::store_failing_time};
  /// Told on a thread of the store's when it is given up (`answers` false, and why) and when it is
  /// back. Must not call the store.
  std::function<void(bool answers, const std::string& why)> on_change{};
  /// Where damaged records are told; on a thread of the store's.
  LogSink log{};
};

struct StoreHealth {
  bool answers = true;
  std::uint64_t refused_at_once = 0;  ///< Calls that it was not asked for, since it was opened.
  std::uint64_t damaged = 0;          ///< Askings for damaged records, likewise.
};

class CircuitBreakerStore : public Store {
 public:
  /// Safe from any thread.
  virtual StoreHealth health() const noexcept = 0;
};

/// Asks `inner`, until it has failed to answer (`unavailable`, `in_doubt`) so often and so long as
/// the rule says. From then on new work and reading are answered `unavailable` at once, and a Find
/// of no record, one at a time and with growing pauses, looks whether it is back; whatever it
/// answers, also `refused`, says that it is. Where what failed would have written, that is a trial
/// only: the next failure gives it up again at once and the pauses go on growing, until something
/// has written.
///
/// Never answered so: what settles an attempt, what people decided, and the repeat of a
/// reserve or claim whose answer was lost, because only the store can tell those (protocol.md §4).
/// Their success ends the trouble.
std::unique_ptr<CircuitBreakerStore> make_circuit_breaker(std::unique_ptr<Store> inner,
                                                          BreakerRule rule = {});

}  // namespace idem
