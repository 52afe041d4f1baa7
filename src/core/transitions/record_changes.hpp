#pragma once

#include "core/transitions/transitions.hpp"

/// The elementary changes that make up the transitions. Each leaves exactly the members of the new
/// state set; none of them checks whether the change is allowed.
namespace idem::transitions {

struct NewAttempt {
  const Token& token;
  const std::string& owner;
  Millis lease;
  bool dispatched;
};

/// Copies the settings of the route into the record, for its next attempt.
void apply_route(Record& record, const Reserve& verb);

/// A record without an attempt; its state is still to be set.
Record fresh_record(const Reserve& verb, StoreTime now);

void begin_attempt(Record& record, const NewAttempt& attempt, StoreTime now, FenceCounter& fences);

/// The last_error_code of an attempt that runs or is unknown, after an event reported that its work
/// was refused.
inline constexpr const char* denied_code = "event_said_failed";
bool is_denied(const Record& record) noexcept;

/// completed, with `response`. Sets is_contested if earlier evidence contradicts it.
Change finish(Record& record, StoredResponse response, StoreTime now);

/// failed_retryable; with a stored request pending, or, past its expiry, completed with a 408.
Change release_attempt(Record& record, ReleaseBasis basis, std::string error_code, Millis retry_in,
                       StoreTime now);

/// completed with a 408: no dispatcher ran it in time.
Change time_out(Record& record, StoreTime now);

void turn_unknown(Record& record, std::string error_code, StoreTime now);

/// `asked` is the record's current attempt, or its last one.
bool is_same_attempt(const Record& record, const AttemptRef& asked) noexcept;

inline bool lease_holds(const Record& record, StoreTime now) noexcept {
  return now < record.locked_until;
}

}  // namespace idem::transitions
