#pragma once

#include "metrics/shard.hpp"
#include "workers/runner.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <memory>

namespace idem::workers {

/// Sweeps and reaps on a thread of its own until the runner is stopped: every
/// limits::lifecycle_interval, and at workers::Pace while more is due. All parameters outlive the
/// runner.
std::unique_ptr<Runner> keep_lifecycle(Store& store, const LogSink& log, metrics::Shard& shard);

}  // namespace idem::workers
