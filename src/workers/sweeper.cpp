#include "workers/sweeper.hpp"

#include "core/record/lease_end.hpp"
#include "workers/damage.hpp"

#include <idem/store_wait.hpp>

#include <algorithm>

namespace idem::workers {

std::expected<Pass, StoreError> sweep_once(Store& store, const LogSink& log, metrics::Shard& shard,
                                           std::size_t most) {
  const auto swept = ask_and_wait(store, Sweep{most});
  if (!swept) {
    shard.store_errors.add();
    return std::unexpected(swept.error());
  }
  Pass pass{swept->size()};
  for (const auto& step : *swept) {
    pass.late = std::max(pass.late, step.late);
    if (report_damage(step, log, shard)) continue;
    if (step.from == State::in_progress) shard.leases_ended.add();
    if (step.to == State::failed_retryable) {
      shard.releases[static_cast<std::size_t>(ReleaseBasis::proven)].add();
    }
    log_lease_end(log, step.id, step.from, step.to);
  }
  return pass;
}

}  // namespace idem::workers
