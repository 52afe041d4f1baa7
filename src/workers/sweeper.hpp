#pragma once

#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Ends one bounded batch of expired leases (protocol.md §3, §19) and logs each step. True: the
/// batch was full. A store that cannot be asked is logged and met again at the next turn.
bool sweep_once(Store& store, const LogSink& log, metrics::Shard& shard);

}  // namespace idem::workers
