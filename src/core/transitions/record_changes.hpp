#pragma once

#include "core/transitions/transitions.hpp"

/// The elementary changes that the transitions are made of. Each leaves a record in which exactly
/// the members that its new state knows are set; none of them checks whether it is allowed.
namespace idem::transitions {

struct NewAttempt {
  const Token& token;
  const std::string& owner;
  Millis lease;
  bool dispatched;
};

/// What the route says today, which holds from the next attempt on.
void take_route(Record& record, const Reserve& verb);

/// A record without an attempt; its state is still to be set.
Record fresh_record(const Reserve& verb, StoreTime now);

void begin_attempt(Record& record, const NewAttempt& attempt, StoreTime now, FenceCounter& fences);

/// What stands as last_error_code of an attempt while it runs, and while its end is unknown, once
/// an event said that its work was refused.
inline constexpr const char* denied_code = "event_said_failed";
bool is_denied(const Record& record) noexcept;

/// completed, with `response`. is_contested afterwards: what was said of the attempt contradicts
/// it.
Change finish(Record& record, StoredResponse response, StoreTime now);

/// failed_retryable; with a stored request pending, or, past its expiry, completed with a 408.
Change release_attempt(Record& record, ReleaseBasis basis, std::string error_code, Millis retry_in,
                       StoreTime now);

/// completed with a 408: nobody came to run it in time.
Change time_out(Record& record, StoreTime now);

void turn_unknown(Record& record, std::string error_code, StoreTime now);

/// The verb speaks of the attempt that the record is in, or came from.
bool is_same_attempt(const Record& record, const Attempt& asked) noexcept;

inline bool lease_holds(const Record& record, StoreTime now) noexcept {
  return now < record.locked_until;
}

}  // namespace idem::transitions
