#include <idem/worker_limits.hpp>
#include "core/exchange/exchange.hpp"

#include "core/exchange/preferences.hpp"

#include <algorithm>

/// The part of the exchange for asynchronous requests: it stores one, or sends a stored one
/// (protocol.md §3, §7).
namespace idem {
namespace {

/// Its Retry-After in seconds, at most limits::retry_after_max; a date would need a clock.
Millis retry_after_of(const WireAnswer& answer) {
  for (const Field& field : answer.headers) {
    if (!equal_names(field.name, "Retry-After")) continue;
    const auto seconds = delta_seconds(field.value);
    if (seconds) return std::min<Millis>(*seconds, limits::retry_after_max);
  }
  return Millis{};
}

}  // namespace

Exchange::Exchange(const ExchangeSettings& settings, Accept accept)
    : Exchange(settings, std::move(accept.as)) {
  to_store_ = std::move(accept.request);
}

Exchange::Exchange(const ExchangeSettings& settings, const Claimed& claimed, Millis lease)
    : settings_(settings), claimed_(true), delay_(settings.settle_retry_first) {
  reserve_.id = claimed.id;
  reserve_.token = claimed.attempt.token;
  reserve_.lease = lease;
  reserve_.dispatched = false;
  attempt_ = claimed.attempt;
}

StoreCall Exchange::asking() const {
  if (to_store_) return Accept{reserve_, *to_store_};
  return reserve_;
}

// Only a stored request is run again without a client, so only its release needs a rest.
Millis Exchange::rest_before_next(const WireAnswer& answer) const {
  if (!claimed_) return Millis{};
  return std::max(settings_.rest, retry_after_of(answer));
}

ExchangeAction Exchange::on_pending(const Pending& pending, MonotonicTime now) {
  reserve_.id = pending.id;
  to_store_.reset();
  in_background_ = true;
  phase_ = Phase::waiting;
  return wait_on(now);
}

// A dispatcher runs a stored request, in as many attempts as are needed. A client that waits for it
// waits for its end, and never begins an attempt itself.
ExchangeAction Exchange::on_background(const std::shared_ptr<const Record>& record,
                                       MonotonicTime now) {
  if (!record) return finish_waiting(released_answer(reserve_.id, store_retry_hint, true));
  switch (record->state) {
    case State::pending:
    case State::in_progress:
      return wait_on(now);
    case State::completed:
      return finish_waiting(replay_answer(record));
    case State::failed_retryable:
      return finish_waiting(released_answer(reserve_.id, store_retry_hint));
    case State::unknown: {
      std::optional<Millis> reconcile_in;
      if (record->reconcile_after) reconcile_in = settings_.look_again;
      return finish_waiting(unknown_answer(reconcile_in, reserve_.id));
    }
    case State::expired:
      return finish_waiting(expired_answer(reserve_.id));
  }
  return wait_on(now);
}

}  // namespace idem
