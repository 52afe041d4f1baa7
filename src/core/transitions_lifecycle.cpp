#include "core/record_changes.hpp"

#include <idem/limits.hpp>

namespace idem::transitions {

Change sweep(Record& record, StoreTime now) {
  switch (record.state) {
    case State::in_progress:
      if (lease_holds(record, now)) return {};
      if (!record.dispatched) {
        // Nothing was sent, and after its lease an owner may not send: that is proof (§3, §11).
        return release_attempt(record, ReleaseBasis::proven, "lease_expired", Millis(0), now);
      }
      if (record.lease_policy != LeasePolicy::unknown) return {};
      turn_unknown(record, "lease_expired", now);
      return {Write::update, false, false};
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
