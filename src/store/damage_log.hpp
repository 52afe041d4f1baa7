#pragma once

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <atomic>
#include <mutex>
#include <set>

namespace idem {

/// Logs damaged records: one line for each, however often callers ask for it, and counts the calls
/// that met one. Safe from any thread.
class DamageLog {
 public:
  explicit DamageLog(LogSink log) : log_(std::move(log)) {}

  template <class Reply>
  void look_at(const std::expected<Reply, StoreError>& result) {
    if (!result && result.error().code == StoreError::Code::damaged) note(result.error());
  }
  void note(const StoreError& error);

  std::uint64_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }

 private:
  LogSink log_;
  std::atomic<std::uint64_t> noted_{0};
  std::mutex mutex_;
  std::set<RecordId> logged_;
};

/// Writes the line.
void log_damage(const LogSink& log, const RecordId& id, std::string_view why);

}  // namespace idem
