#include "core/transitions/record_changes.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::transitions {
namespace {

using ResolveVerdict = Resolve::Verdict;

ResolveVerdict verdict_on(const Record& record, const Resolve& verb, StoreTime now) noexcept {
  const bool positive = verb.as == Resolve::As::completed;
  switch (record.state) {
    case State::unknown:
      break;
    case State::pending:
    case State::failed_retryable:
      if (!positive) return ResolveVerdict::wrong_state;
      break;
    case State::in_progress:
    case State::completed:
    case State::expired:
      return ResolveVerdict::wrong_state;
  }
  // A pending record without an attempt: evidence can be about none.
  if (!verb.fence || verb.fence != record.fence()) return ResolveVerdict::wrong_fence;
  if (positive && !verb.response) return ResolveVerdict::missing_response;
  const bool is_late_enough =
      verb.observed_at > record.locked_until + verb.grace && verb.observed_at <= now;
  if (!positive && !is_late_enough) return ResolveVerdict::too_early;
  const bool is_denial = !positive || verb.denies;
  return is_denial && record.is_contested ? ResolveVerdict::by_evidence : ResolveVerdict::done;
}

bool may_be_about(const Record& record, const Resolve& verb) noexcept {
  return record.attempt && (!verb.fence || verb.fence == record.attempt->fence);
}

/// Whether a refused denial is kept, to be compared with the answer that may still come.
bool is_kept_denial(const Record& record, const Resolve& verb) noexcept {
  const bool is_open = record.state == State::in_progress || record.state == State::unknown;
  return is_open && verb.as == Resolve::As::completed && verb.denies &&
         may_be_about(record, verb) && !is_denied(record);
}

/// Whether refused evidence says, or may say, that this attempt ran. A denial does not: it reports
/// no effect that could happen twice.
bool contests(const Record& record, const Resolve& verb, ResolveVerdict verdict,
              StoreTime now) noexcept {
  const bool says_ran = verb.as == Resolve::As::completed && !verb.denies;
  if (!says_ran || !may_be_about(record, verb) || record.is_contested) return false;
  if (verdict == ResolveVerdict::missing_response || verdict == ResolveVerdict::wrong_fence)
    return true;
  if (verdict != ResolveVerdict::wrong_state) return false;
  return record.state == State::in_progress || (state_at(record, now) == State::completed &&
                                                record.response && record.response->status >= 500);
}

bool would_run(State state) noexcept {
  return state == State::failed_retryable || state == State::pending;
}

/// unknown, and due for the reconciler at once.
void hold(Record& record, StoreTime now) {
  if (!record.stored_request) record.expires_at.reset();
  turn_unknown(record, "contested", now);
  record.reconcile_after = now;
}

ResolveVerdict verdict_on(const Record& record, const CacheBust& verb,
                          std::span<const EvidenceEntry> log, StoreTime now) noexcept {
  const bool is_stored_error = state_at(record, now) == State::completed && record.response &&
                               record.response->status >= 500;
  if (!is_stored_error) return ResolveVerdict::wrong_state;
  if (!verb.fence || verb.fence != record.fence()) return ResolveVerdict::wrong_fence;
  const bool has_evidence = std::ranges::any_of(log, [&](const EvidenceEntry& entry) {
    return entry.applied && entry.after == State::completed && entry.fence == verb.fence;
  });
  return has_evidence || record.is_contested ? ResolveVerdict::by_evidence : ResolveVerdict::done;
}

ResolveVerdict verdict_on(const Record& record, const Reschedule& verb) noexcept {
  if (record.state != State::unknown) return ResolveVerdict::wrong_state;
  if (!verb.fence || verb.fence != record.fence()) return ResolveVerdict::wrong_fence;
  return verb.attempts == record.reconcile_attempts ? ResolveVerdict::done
                                                    : ResolveVerdict::superseded;
}

/// Completes the log entry with the record's new state.
void conclude(EvidenceStep& step, const std::optional<Record>& record, StoreTime now) {
  if (step.outcome.verdict == ResolveVerdict::not_found) return;
  step.entry.after = state_at(*record, now);
  step.entry.applied = step.outcome.verdict == ResolveVerdict::done;
  step.outcome.state = step.entry.after;
}

}  // namespace

EvidenceStep resolve(std::optional<Record>& record, Resolve& verb, StoreTime now) {
  EvidenceStep step;
  step.entry = {.fence = verb.fence,
                .source = std::move(verb.source),
                .evidence = std::move(verb.evidence),
                .reason = std::move(verb.reason),
                .observed_at = verb.observed_at,
                .recorded_at = now};
  if (!record || !is_live(*record, now)) return step;
  step.entry.before = state_at(*record, now);
  step.outcome.verdict = verdict_on(*record, verb, now);
  if (step.outcome.verdict == ResolveVerdict::done) {
    switch (verb.as) {
      case Resolve::As::completed:
        step.change = finish(*record, std::move(*verb.response), now);
        step.outcome.is_contradicted = record->is_contested;
        break;
      case Resolve::As::failed_retryable:
        step.change = release_attempt(*record, ReleaseBasis::proven, "resolved", Millis(0), now);
        break;
    }
  } else if (contests(*record, verb, step.outcome.verdict, now)) {
    record->is_contested = true;
    // The record would run again, although its attempt may have run.
    if (would_run(record->state)) hold(*record, now);
    step.change = {Write::update, false, false};
  } else if (is_kept_denial(*record, verb)) {
    record->last_error_code = denied_code;
    step.change = {Write::update, false, false};
  }
  conclude(step, record, now);
  return step;
}

EvidenceStep cache_bust(std::optional<Record>& record, const CacheBust& verb,
                        std::span<const EvidenceEntry> log, StoreTime now) {
  EvidenceStep step;
  step.entry = {.fence = verb.fence,
                .source = verb.source,
                .evidence = "cache-bust",
                .reason = verb.reason,
                .observed_at = now,
                .recorded_at = now};
  if (!record || !is_live(*record, now)) return step;
  step.entry.before = state_at(*record, now);
  step.outcome.verdict = verdict_on(*record, verb, log, now);
  if (step.outcome.verdict == ResolveVerdict::done) {
    step.change = release_attempt(*record, ReleaseBasis::declared, "cache_bust", Millis(0), now);
    step.change.response = true;
    record->response.reset();
    if (record->charged != 0) record->charged = limits::record_charge;
    record->completed_at.reset();
    record->tombstone_until.reset();
    // A repeat of the attempt's complete must not bring the answer back, so its token is forgotten;
    // evidence may still name its fence.
    record->attempt->token = {};
  }
  conclude(step, record, now);
  return step;
}

EvidenceStep reschedule(std::optional<Record>& record, const Reschedule& verb, StoreTime now) {
  EvidenceStep step;
  step.entry = {.fence = verb.fence,
                .source = verb.source,
                .evidence = verb.evidence,
                .reason = verb.reason,
                .observed_at = verb.observed_at,
                .recorded_at = now};
  if (!record || !is_live(*record, now)) return step;
  step.entry.before = state_at(*record, now);
  step.outcome.verdict = verdict_on(*record, verb);
  if (step.outcome.verdict == ResolveVerdict::done) {
    record->reconcile_attempts += 1;
    record->reconcile_after.reset();
    if (verb.reconcile_in) record->reconcile_after = now + *verb.reconcile_in;
    step.change = {Write::update, false, false};
  }
  conclude(step, record, now);
  step.entry.applied = false;  // It is no decision about the outcome.
  return step;
}

}  // namespace idem::transitions
