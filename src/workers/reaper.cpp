#include "workers/reaper.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

namespace idem::workers {

bool reap_once(Store& store, const LogSink& log, metrics::Shard& shard) {
  const auto reaped = ask_and_wait(store, Reap{limits::sweep_batch});
  if (!reaped) {
    shard.store_errors.add();
    log(LogLevel::warning, "reap_failed", {{"detail", reaped.error().detail}});
    return false;
  }
  shard.pruned.add(reaped->size());
  if (!reaped->empty()) {
    log(LogLevel::info, "reaped", {{"records", std::to_string(reaped->size())}});
  }
  return reaped->size() >= limits::sweep_batch;
}

}  // namespace idem::workers
