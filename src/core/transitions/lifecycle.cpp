#include "core/transitions/record_changes.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::transitions {
namespace {

/// For an attempt that can no longer send.
Change end_attempt(Record& record, const char* why, StoreTime now) {
  if (!record.dispatched) {
    // Nothing was sent, and nothing will be: a proof (§3, §11).
    return release_attempt(record, ReleaseBasis::proven, why, Millis(0), now);
  }
  if (record.lease_policy != LeasePolicy::unknown) return {};
  turn_unknown(record, why, now);
  return {Write::update, false, false};
}

}  // namespace

Change end_cut_off(Record& record, StoreTime now) {
  if (record.state != State::in_progress) return {};
  return end_attempt(record, "process_ended", now);
}

Change end_restored(Record& record, StoreTime now, FenceCounter& fences) {
  switch (record.state) {
    case State::completed:
    case State::expired:
      return {};
    case State::unknown:
      break;
    case State::pending:
    case State::failed_retryable:
      // What is known of the last attempt says nothing of one that may have followed it.
      record.attempt = Attempt{fences.next(), Token{}};
      record.upstream_reference.clear();
      [[fallthrough]];
    case State::in_progress:
      record.dispatched = true;
      if (!record.stored_request) record.expires_at.reset();
      turn_unknown(record, "store_restored", now);
      // Without a provider nobody asks, and the client must not wait for that.
      if (!record.provider.empty()) record.reconcile_after = now;
      break;
  }
  record.locked_until = std::max(record.locked_until, now);
  return {Write::update, false, false};
}

Change sweep(Record& record, StoreTime now) {
  switch (record.state) {
    case State::in_progress:
      if (lease_holds(record, now)) return {};
      return end_attempt(record, "lease_expired", now);
    case State::pending:
      if (!record.expires_at || now < *record.expires_at) return {};
      return time_out(record, now);
    case State::completed:
    case State::failed_retryable:
    case State::unknown:
    case State::expired:
      return {};
  }
  return {};
}

Change reap(Record& record, StoreTime now) {
  switch (record.state) {
    case State::completed: {
      if (!record.expires_at || now < *record.expires_at) return {};
      record.state = State::expired;
      record.response.reset();
      if (record.charged != 0) record.charged = limits::tombstone_charge;
      record.changed_at = *record.expires_at;
      return {Write::update, true, false};
    }
    case State::failed_retryable:
    case State::expired:
      return {is_live(record, now) ? Write::none : Write::erase, true, false};
    case State::pending:
    case State::in_progress:
    case State::unknown:
      return {};
  }
  return {};
}

}  // namespace idem::transitions
