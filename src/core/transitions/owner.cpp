#include "core/transitions/record_changes.hpp"

#include <algorithm>

namespace idem::transitions {
namespace {

Step<OwnerReply> answer(Verdict verdict, const std::optional<Record>& record, StoreTime now,
                        Change change = {}) {
  OwnerReply reply{verdict, std::nullopt, std::nullopt};
  if (!record || !is_live(*record, now)) return {reply, change};
  reply.state = state_at(*record, now);
  // During an attempt of an asynchronous request expires_at is set but means nothing.
  const bool runs = record->state == State::in_progress || record->state == State::unknown;
  if (!runs) reply.expires_at = record->expires_at;
  return {reply, change};
}

bool is_ours(const std::optional<Record>& record, const AttemptRef& attempt,
             StoreTime now) noexcept {
  return record && is_live(*record, now) && is_same_attempt(*record, attempt);
}

bool has_answer(const Record& record) noexcept {
  return record.state == State::completed || record.state == State::expired;
}

/// Why the verb is refused that needs a running attempt whose lease holds; none: it is not.
std::optional<Verdict> refusal(const std::optional<Record>& record, const AttemptRef& attempt,
                               StoreTime now) noexcept {
  if (!is_ours(record, attempt, now)) return Verdict::stale;
  if (has_answer(*record)) return Verdict::settled;
  if (record->state != State::in_progress || !lease_holds(*record, now)) return Verdict::stale;
  return std::nullopt;
}

constexpr Change update{Write::update, false, false};

}  // namespace

Step<OwnerReply> dispatched(std::optional<Record>& record, const Dispatched& verb, StoreTime now) {
  if (const auto no = refusal(record, verb.attempt, now)) return answer(*no, record, now);
  if (record->dispatched) return answer(Verdict::done, record, now);
  record->dispatched = true;
  return answer(Verdict::done, record, now, update);
}

Step<OwnerReply> renew(std::optional<Record>& record, const Renew& verb, StoreTime now) {
  if (const auto no = refusal(record, verb.attempt, now)) return answer(*no, record, now);
  // A renewal that arrives out of order never shortens the lease.
  record->locked_until = std::max(record->locked_until, now + verb.lease);
  return answer(Verdict::done, record, now, update);
}

Step<OwnerReply> advance(std::optional<Record>& record, Advance& verb, StoreTime now) {
  if (const auto no = refusal(record, verb.attempt, now)) return answer(*no, record, now);
  record->recovery_point = std::move(verb.recovery_point);
  return answer(Verdict::done, record, now, update);
}

Step<OwnerReply> complete(std::optional<Record>& record, Complete& verb, StoreTime now) {
  if (!is_ours(record, verb.attempt, now)) return answer(Verdict::stale, record, now);
  if (has_answer(*record)) return answer(Verdict::settled, record, now);
  // in_progress, also after the end of its lease: no other attempt has begun, so this one is
  // current. The other states came from this attempt: its own late answer is the best evidence
  // (§3).
  const Change change = finish(*record, std::move(verb.response), now);
  if (!verb.upstream_reference.empty()) {
    record->upstream_reference = std::move(verb.upstream_reference);
  }
  auto step = answer(Verdict::done, record, now, change);
  step.outcome.is_contradicted = record->is_contested;
  return step;
}

Step<OwnerReply> release(std::optional<Record>& record, Release& verb, StoreTime now) {
  if (!is_ours(record, verb.attempt, now)) return answer(Verdict::stale, record, now);
  switch (record->state) {
    case State::in_progress:
    case State::unknown: {
      const Change change =
          release_attempt(*record, verb.basis, std::move(verb.error_code), verb.retry_in, now);
      return answer(Verdict::done, record, now, change);
    }
    case State::failed_retryable:
    case State::pending:
      return answer(Verdict::done, record, now);
    case State::completed:
    case State::expired:
      return answer(Verdict::settled, record, now);
  }
  return answer(Verdict::stale, record, now);
}

Step<OwnerReply> mark_unknown(std::optional<Record>& record, MarkUnknown& verb, StoreTime now) {
  if (!is_ours(record, verb.attempt, now)) return answer(Verdict::stale, record, now);
  switch (record->state) {
    case State::in_progress: {
      turn_unknown(*record, std::move(verb.error_code), now);
      if (verb.reconcile_in) record->reconcile_after = now + *verb.reconcile_in;
      if (!verb.upstream_reference.empty()) {
        record->upstream_reference = std::move(verb.upstream_reference);
      }
      return answer(Verdict::done, record, now, update);
    }
    case State::unknown:
      return answer(Verdict::done, record, now);
    case State::failed_retryable:
    case State::pending:
    case State::completed:
    case State::expired:
      return answer(Verdict::settled, record, now);
  }
  return answer(Verdict::stale, record, now);
}

}  // namespace idem::transitions
