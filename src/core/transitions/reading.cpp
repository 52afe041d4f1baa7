#include "core/transitions/transitions.hpp"

namespace idem::transitions {
namespace {

bool reached(const std::optional<StoreTime>& moment, StoreTime now) noexcept {
  return moment && now >= *moment;
}

}  // namespace

bool is_live(const Record& record, StoreTime now) noexcept {
  switch (record.state) {
    case State::pending:
    case State::in_progress:
    case State::unknown:
      return true;
    case State::failed_retryable:
      return !reached(record.expires_at, now);
    case State::completed:
    case State::expired:
      return !reached(record.tombstone_until, now);
  }
  return true;
}

State state_at(const Record& record, StoreTime now) noexcept {
  const bool over = record.state == State::completed && reached(record.expires_at, now);
  return over ? State::expired : record.state;
}

std::optional<Record> view(std::optional<Record> record, StoreTime now) {
  if (!record || !is_live(*record, now)) return std::nullopt;
  // As reap() will leave it, so that a reader sees the same before and after the reaper.
  if (record->state == State::completed && state_at(*record, now) == State::expired) {
    reap(*record, now);
  }
  return record;
}

std::optional<StoreTime> due_at(const Record& record) noexcept {
  switch (record.state) {
    case State::pending:
      return record.expires_at;
    case State::in_progress:
      if (record.dispatched && record.lease_policy != LeasePolicy::unknown) return std::nullopt;
      return record.locked_until;
    case State::completed:
    case State::failed_retryable:
      return record.expires_at;
    case State::expired:
      return record.tombstone_until;
    case State::unknown:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace idem::transitions
