#pragma once

#include "metrics/shard.hpp"
#include "workers/pace.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Ends up to `most` expired leases (protocol.md §3, §19) and logs each step. Error: the store did
/// not answer; the next turn asks again.
std::expected<Pass, StoreError> sweep_once(Store& store, const LogSink& log, metrics::Shard& shard,
                                           std::size_t most);

}  // namespace idem::workers
