#pragma once

#include "metrics/shard.hpp"
#include "workers/pace.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Ends up to `most` expired leases (protocol.md §3, §19) and logs each step. An error: the store
/// could not be asked, and is asked again at the next turn.
std::expected<Pass, StoreError> sweep_once(Store& store, const LogSink& log, metrics::Shard& shard,
                                           std::size_t most);

}  // namespace idem::workers
