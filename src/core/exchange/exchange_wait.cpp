#include "core/exchange/exchange.hpp"

#include <idem/assert.hpp>

#include <algorithm>

/// The part of the exchange that waits for the attempt of another request (protocol.md §7).
namespace idem {
namespace {

bool has_applied_preference(const WireAnswer& answer) {
  return std::ranges::any_of(answer.headers, [](const Field& field) {
    return equal_names(field.name, "Preference-Applied") &&
           !equal_names(field.value, "respond-async");
  });
}

}  // namespace

ExchangeAction Exchange::on_running(const InProgress& running, MonotonicTime now) {
  reserve_.id = running.id;
  met_ =
      Met{running.fence, running.locked_until, running.locked_until - running.lease_remaining, now};
  phase_ = Phase::waiting;
  in_background_ = running.is_stored;
  to_store_.reset();  // There is a record, and many may wait for it.
  return wait_on(now);
}

// The fence of the record decides. An older fence says nothing about the attempt that is waited
// for. A newer one means that it is over; this request does not wait for its successor.
ExchangeAction Exchange::on_woken(const Woken& woken, MonotonicTime now) {
  IDEM_ASSERT(phase_ == Phase::waiting);
  if (!woken.record)
    return finish_waiting(store_error_answer(woken.record.error(), store_retry_hint));
  const auto& record = *woken.record;
  if (in_background_) return on_background(record, now);
  // Without a fence: met while another transaction was making it. Only its commit shows whose
  // attempt that is.
  if (!record && !met_->fence) return wait_on(now);
  if (!record) return finish_waiting(released_answer(reserve_.id, store_retry_hint, true));
  if (!met_->fence) met_->fence = record->fence();
  if (record->fence() < met_->fence) return wait_on(now);
  switch (record->state) {
    case State::in_progress:
      if (record->stored_request) {
        in_background_ = true;
        return on_background(record, now);
      }
      if (record->fence() > met_->fence) {
        return finish_waiting(released_answer(reserve_.id, until(record->locked_until, now)));
      }
      met_->locked_until = record->locked_until;
      return wait_on(now);
    case State::completed:
      return finish_waiting(replay_answer(record));
    case State::failed_retryable:
      return finish_waiting(released_answer(reserve_.id, store_retry_hint));
    case State::unknown: {
      std::optional<Millis> reconcile_in;
      if (record->reconcile_after) reconcile_in = until(*record->reconcile_after, now);
      return finish_waiting(unknown_answer(reconcile_in, reserve_.id));
    }
    case State::pending:
      in_background_ = true;
      return on_background(record, now);
    case State::expired:
      return finish_waiting(expired_answer(reserve_.id));
  }
  return wait_on(now);
}

ExchangeAction Exchange::wait_on(MonotonicTime now) {
  const MonotonicTime over = started_at_ + settings_.wait;
  if (now >= over) return still_running(now);
  return WaitFor{reserve_.id, met_ ? met_->fence : std::nullopt, over};
}

ExchangeAction Exchange::still_running(MonotonicTime now) {
  IDEM_ASSERT(phase_ == Phase::waiting);
  const Millis left = met_ ? until(met_->locked_until, now) : Millis{};
  // 202 promises that the work goes on without a client. Without a stored request it ends with the
  // attempt.
  if (in_background_) {
    const State state = met_ ? State::in_progress : State::pending;
    WireAnswer answer = pending_answer(reserve_.id, state, settings_.look_again);
    if (settings_.async_applied) answer.headers.push_back({"Preference-Applied", "respond-async"});
    return finish_waiting(std::move(answer));
  }
  return finish_waiting(in_progress_answer({left}, reserve_.id));
}

/// How long from now, by the store's clock.
Millis Exchange::until(StoreTime moment, MonotonicTime now) const {
  return std::max(Millis{0}, moment - (met_->store_time + (now - met_->at)));
}

ExchangeAction Exchange::finish_waiting(WireAnswer answer) {
  // RFC 7240 §3. A stored answer may have the field for a preference that the upstream applied.
  if (settings_.wait_applied && !has_applied_preference(answer)) {
    answer.headers.push_back(
        {"Preference-Applied", "wait=" + std::to_string(settings_.wait_applied->count())});
  }
  return finish(std::move(answer));
}

}  // namespace idem
