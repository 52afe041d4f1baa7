#pragma once

#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// True for a record that was due and could not be read: it is counted, and the alarm raised. Once,
/// as it is due no more.
inline bool tell_damage(const LifecycleStep& step, const LogSink& log, metrics::Shard& shard) {
  if (!step.damaged) return false;
  shard.damaged.add();
  log(LogLevel::error, "record_damaged",
      {{"operation_ref", to_hex(step.id.bytes)}, {"detail", "it was due, and cannot be read"}});
  return true;
}

}  // namespace idem::workers
