#include "workers/reaper.hpp"

#include "workers/damage.hpp"

#include <idem/store_wait.hpp>

#include <algorithm>

namespace idem::workers {

std::expected<Pass, StoreError> reap_once(Store& store, const LogSink& log, metrics::Shard& shard,
                                          std::size_t most) {
  const auto reaped = ask_and_wait(store, Reap{most});
  if (!reaped) {
    shard.store_errors.add();
    return std::unexpected(reaped.error());
  }
  Pass pass{reaped->size()};
  for (const LifecycleStep& step : *reaped) {
    pass.late = std::max(pass.late, step.late);
    if (!report_damage(step, log, shard)) shard.pruned.add();
  }
  return pass;
}

}  // namespace idem::workers
