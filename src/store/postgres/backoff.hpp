#pragma once

#include <idem/record.hpp>

#include <string_view>

/// How long to leave a server alone, and which of its errors are worth another try.
namespace idem::postgres {

struct Failure;

/// Some of `length`, so that nodes do not come back at one time.
Millis with_jitter(Millis length);
/// The pause after one of `before`; 0: the first.
Millis next_backoff(Millis before);

/// Lost a race against another transaction, and was rolled back: worth another try.
bool is_race(const Failure& failure);
/// Ended in favour of another transaction, by a service's own statements too: the same may go well
/// once that is over.
bool is_contention(std::string_view sqlstate);
/// A server that does not write, or not now: the next one of the URI may be the right one.
bool is_other_server(const Failure& failure);
/// As asked, it will never do.
bool is_refusal(const Failure& failure);

}  // namespace idem::postgres
