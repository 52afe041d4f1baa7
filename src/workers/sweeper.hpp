#pragma once

#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Ends up to `most` expired leases (protocol.md §3, §19) and logs each step. Answers how many. A
/// store that cannot be asked is logged and met again at the next turn.
std::size_t sweep_once(Store& store, const LogSink& log, metrics::Shard& shard, std::size_t most);

}  // namespace idem::workers
