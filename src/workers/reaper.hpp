#pragma once

#include "metrics/shard.hpp"
#include "workers/pace.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Drops up to `most` items whose time is over (protocol.md §3, §15): bodies of completed records,
/// released records, tombstones; never a record in_progress or unknown. Error: the store did not
/// answer.
std::expected<Pass, StoreError> reap_once(Store& store, const LogSink& log, metrics::Shard& shard,
                                          std::size_t most);

}  // namespace idem::workers
