#include "store/damage_log.hpp"

#include <idem/limits.hpp>

namespace idem {

void DamageLog::note(const StoreError& error) {
  noted_.fetch_add(1, std::memory_order_relaxed);
  const RecordId id = error.record.value_or(RecordId{});
  {
    const std::lock_guard lock(mutex_);
    // The set is bounded: a repeated line is better than a missing one.
    if (logged_.size() >= limits::damaged_logged_max) logged_.clear();
    if (!logged_.insert(id).second) return;
  }
  if (!error.record && log_) {
    return log_(LogLevel::error, "store_damaged", {{"detail", error.detail}});
  }
  log_damage(log_, id, error.detail);
}

void log_damage(const LogSink& log, const RecordId& id, std::string_view why) {
  if (!log) return;
  log(LogLevel::error, "record_damaged",
      {{"operation_ref", to_hex(id.bytes)}, {"detail", std::string(why)}});
}

}  // namespace idem
