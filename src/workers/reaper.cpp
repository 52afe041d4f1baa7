#include "workers/reaper.hpp"

#include "workers/damage.hpp"

#include <idem/store_wait.hpp>

namespace idem::workers {

std::size_t reap_once(Store& store, const LogSink& log, metrics::Shard& shard, std::size_t most) {
  const auto reaped = ask_and_wait(store, Reap{most});
  if (!reaped) {
    shard.store_errors.add();
    log(LogLevel::warning, "reap_failed", {{"detail", reaped.error().detail}});
    return 0;
  }
  for (const auto& step : *reaped) {
    if (!tell_damage(step, log, shard)) shard.pruned.add();
  }
  return reaped->size();
}

}  // namespace idem::workers
