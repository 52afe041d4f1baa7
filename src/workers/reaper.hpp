#pragma once

#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Drops one bounded batch of what is past its retention (protocol.md §3, §15): bodies of completed
/// records, released records, tombstones. Never in_progress, never unknown. True: the batch was
/// full.
bool reap_once(Store& store, const LogSink& log, metrics::Shard& shard);

}  // namespace idem::workers
