#include "workers/sweeper.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

namespace idem::workers {

bool sweep_once(Store& store, const LogSink& log, metrics::Shard& shard) {
  const auto swept = ask_and_wait(store, Sweep{limits::sweep_batch});
  if (!swept) {
    shard.store_errors.add();
    log(LogLevel::warning, "sweep_failed", {{"detail", swept.error().detail}});
    return false;
  }
  for (const auto& step : *swept) {
    if (step.from == State::in_progress) shard.leases_ended.add();
    if (step.to == State::failed_retryable) {
      shard.releases[static_cast<std::size_t>(ReleaseBasis::proven)].add();
    }
    const bool unknown = step.to == State::unknown;
    log(unknown ? LogLevel::warning : LogLevel::info, "lease_expired",
        {{"operation_ref", to_hex(step.id.bytes)},
         {"from", std::string(name_of(step.from))},
         {"to", std::string(step.to ? name_of(*step.to) : "gone")}});
  }
  return swept->size() >= limits::sweep_batch;
}

}  // namespace idem::workers
