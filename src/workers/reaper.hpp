#pragma once

#include "metrics/shard.hpp"
#include "workers/pace.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Drops up to `most` of what is past its retention (protocol.md §3, §15): bodies of completed
/// records, released records, tombstones. Never in_progress, never unknown. An error: the store
/// could not be asked.
std::expected<Pass, StoreError> reap_once(Store& store, const LogSink& log, metrics::Shard& shard,
                                          std::size_t most);

}  // namespace idem::workers
