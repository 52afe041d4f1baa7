#include "core/transitions/record_changes.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem::transitions {
namespace {

NewAttempt attempt_of(const Reserve& verb) {
  return {verb.token, verb.owner, verb.lease, verb.dispatched};
}

void begin_again(Record& record, const Reserve& verb, StoreTime now, FenceCounter& fences) {
  // The recovery point stays.
  apply_route(record, verb);
  begin_attempt(record, attempt_of(verb), now, fences);
}

Execute execute(const Record& record, bool again) {
  return {record.id, *record.attempt, record.recovery_point, again};
}

Unknown unknown(const Record& record, StoreTime now) {
  Unknown answer{record.changed_at, std::nullopt, record.id};
  if (record.reconcile_after) {
    answer.reconcile_in = std::max(Millis::zero(), *record.reconcile_after - now);
  }
  return answer;
}

InProgress in_progress(const Record& record, Millis lease_remaining) {
  return {lease_remaining, record.id, record.fence(), record.locked_until,
          record.stored_request.has_value()};
}

Replay replay(Record& record, const Change& change, StoreTime now) {
  IDEM_ASSERT(record.response && record.completed_at && record.expires_at);
  return {change.write == Write::none ? std::move(*record.response) : *record.response,
          *record.completed_at,
          *record.expires_at,
          record.id,
          *record.expires_at - now,
          record.fence()};
}

/// The outcome for a record that has ended, or that no reserve may run.
ReserveOutcome answer_of(Record& record, const Change& change, StoreTime now) {
  switch (state_at(record, now)) {
    case State::pending:
      return Pending{record.id};
    case State::unknown:
      return unknown(record, now);
    case State::completed:
      return replay(record, change, now);
    case State::expired:
      return Expired{record.completed_at.value_or(record.changed_at), record.id};
    case State::in_progress:
    case State::failed_retryable:
      break;
  }
  IDEM_ASSERT(!"in_progress and failed_retryable are answered by the caller");
  return Pending{record.id};
}

KeyMisuse misuse(const Record& record, const std::vector<Fingerprint>& offered, StoreTime now) {
  return {state_at(record, now), prove_two_requests(offered.front(), record.fingerprint),
          record.id};
}

}  // namespace

bool any_matches(const std::vector<Fingerprint>& offered, const Fingerprint& stored) noexcept {
  bool matches = false;
  for (const Fingerprint& fingerprint : offered) {
    matches |= same_fingerprint(fingerprint, stored);
  }
  return matches;
}

Step<ReserveOutcome> reserve(std::optional<Record>& record, const Reserve& verb,
                             const std::vector<Fingerprint>& offered, StoreTime now,
                             FenceCounter& fences) {
  if (!record || !is_live(*record, now)) {
    record = fresh_record(verb, now);
    begin_attempt(*record, attempt_of(verb), now, fences);
    return {execute(*record, false), {Write::insert, true, true}};
  }
  if (!any_matches(offered, record->fingerprint)) {
    return {misuse(*record, offered, now), {}};
  }
  const Change change = sweep(*record, now);
  if (record->state == State::in_progress && lease_holds(*record, now)) {
    // Only the token proves that the caller owns the reservation (§4).
    if (is_same_attempt(*record, {std::nullopt, verb.token})) return {execute(*record, false), {}};
    return {in_progress(*record, record->locked_until - now), {}};
  }
  // An expired lease that sweep() left alone is one that may be resumed or rerun.
  if (record->state == State::in_progress || record->state == State::failed_retryable) {
    begin_again(*record, verb, now, fences);
    return {execute(*record, true), {Write::update, change.response, change.request}};
  }
  ReserveOutcome answer = answer_of(*record, change, now);
  return {std::move(answer), change};
}

Step<ReserveOutcome> accept(std::optional<Record>& record, Accept& verb,
                            const std::vector<Fingerprint>& offered, StoreTime now) {
  const bool is_new = !record || !is_live(*record, now);
  Change change;
  if (is_new) {
    record = fresh_record(verb.as, now);
    change = {Write::insert, true, true};
  } else {
    if (!any_matches(offered, record->fingerprint)) {
      return {misuse(*record, offered, now), {}};
    }
    change = sweep(*record, now);
    if (record->state == State::in_progress) {
      if (lease_holds(*record, now)) return {in_progress(*record, record->locked_until - now), {}};
      // The attempt's owner is gone. Only a reserve resumes it (§3): its request is stored already,
      // or it is synchronous, and this call must not make it asynchronous. With `rerun` the
      // request is stored, to be run again.
      if (record->stored_request) return {Pending{record->id}, {}};
      if (record->lease_policy != LeasePolicy::rerun) {
        return {in_progress(*record, Millis(1)), {}};
      }
    } else if (record->state != State::failed_retryable) {
      ReserveOutcome answer = answer_of(*record, change, now);
      return {std::move(answer), change};
    }
    apply_route(*record, verb.as);
    change = {Write::update, change.response, true};
  }
  record->state = State::pending;
  record->stored_request = std::move(verb.request);
  if (record->charged != 0) record->charged += record->stored_request->size();
  record->release_basis.reset();
  record->last_error_code.clear();
  record->dispatched = false;
  record->changed_at = now;
  record->locked_until = now;
  record->expires_at = now + record->retention;
  return {Pending{record->id}, change};
}

bool is_claimable(const Record& record, StoreTime now) noexcept {
  return record.state == State::pending && now >= record.locked_until &&
         !(record.expires_at && now >= *record.expires_at);
}

Step<Claimed> claim(Record& record, const Claim& verb, StoreTime now, FenceCounter& fences) {
  IDEM_ASSERT(is_claimable(record, now) && record.stored_request);
  begin_attempt(record, {verb.token, verb.owner, verb.lease, verb.dispatched}, now, fences);
  // Today's route sends it, which may differ from the route that accepted it.
  record.provider.clear();
  return {Claimed{record.id, record.scope, record.operation, *record.attempt,
                  *record.stored_request, record.recovery_point},
          {Write::update, false, false}};
}

}  // namespace idem::transitions
