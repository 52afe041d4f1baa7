#pragma once

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <optional>

namespace idem {

/// A line about an attempt whose lease ran out, whichever verb ended it: a warning if its outcome
/// is unknown now. `to`: the record's state now; none: it is gone.
void log_lease_end(const LogSink& log, const RecordId& id, State from, std::optional<State> to);

/// The same line if a reserve or an accept ended a lease; otherwise nothing.
void log_lease_end(const LogSink& log, const ReserveOutcome& outcome);
void log_lease_end(const LogSink& log, const StoreResult& result);

}  // namespace idem
