#pragma once

#include "store/sql_server/backoff.hpp"

#include <idem/store.hpp>

#include <string>
#include <thread>

/// The tries of one work of a service, whose thread they block.
namespace idem::sql_server {

/// Counts how often a work has given way, and decides whether it runs again.
class Contention {
 public:
  bool is_worth_another_try() {
    const bool is_late = MonotonicClock::now() - since_ >= limits::transaction_retries_max;
    return ++tries_ < limits::transaction_tries_max && !is_late;
  }
  /// Longer each time, with jitter.
  void pause() {
    std::this_thread::sleep_for(with_jitter(pause_));
    pause_ *= 2;
  }
  std::string at_the_last_try(const std::string& why) const {
    return why + ", at the last of " + std::to_string(tries_) + " tries";
  }

 private:
  MonotonicTime since_ = MonotonicClock::now();
  Millis pause_ = limits::transaction_retry_first;
  int tries_ = 0;
};

/// Whether the call ends or advances the attempt that was admitted.
template <class Admission>
bool is_own_step(const StoreCall& call, const Admission& admission) {
  const auto is_own = [&](const auto* verb) {
    return verb != nullptr && verb->id == admission.id && verb->attempt == admission.attempt;
  };
  return is_own(std::get_if<Complete>(&call)) || is_own(std::get_if<Advance>(&call)) ||
         is_own(std::get_if<MarkUnknown>(&call));
}

}  // namespace idem::sql_server
