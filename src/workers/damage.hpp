#pragma once

#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

namespace idem::workers {

/// Counts and logs a record that was due and could not be read; false: the step is of another kind.
/// Such a record is due no more afterwards, so it is reported once.
inline bool report_damage(const LifecycleStep& step, const LogSink& log, metrics::Shard& shard) {
  if (!step.damaged) return false;
  shard.damaged.add();
  log(LogLevel::error, "record_damaged",
      {{"operation_ref", to_hex(step.id.bytes)}, {"detail", "it was due, and cannot be read"}});
  return true;
}

}  // namespace idem::workers
