#include "workers/lifecycle.hpp"

#include "workers/pace.hpp"
#include "workers/reaper.hpp"
#include "workers/sweeper.hpp"

#include <idem/worker_limits.hpp>

namespace idem::workers {
namespace {

class Lifecycle {
 public:
  Lifecycle(Store& store, const LogSink& log, metrics::Shard& shard)
      : store_(store), log_(log), shard_(shard) {}

  Pace::Duration turn() {
    const auto began = std::chrono::steady_clock::now();
    const std::size_t slice = pace_.slice();
    const std::size_t swept = sweep_once(store_, log_, shard_, slice);
    const std::size_t reaped = reap_once(store_, log_, shard_, slice);
    const bool full = swept >= slice || reaped >= slice;
    tell(reaped, full);
    return pace_.rest_after(std::chrono::steady_clock::now() - began, full);
  }

 private:
  // A line for each slice would be dozens a second.
  void tell(std::size_t reaped, bool full) {
    reaped_ += reaped;
    if (reaped_ == 0 || (full && reaped_ < limits::reaped_told)) return;
    log_(LogLevel::info, "reaped", {{"records", std::to_string(reaped_)}});
    reaped_ = 0;
  }

  Store& store_;
  LogSink log_;
  metrics::Shard& shard_;
  Pace pace_;
  std::size_t reaped_ = 0;  ///< Since the last line.
};

}  // namespace

std::unique_ptr<Runner> keep_lifecycle(Store& store, const LogSink& log, metrics::Shard& shard) {
  const auto lifecycle = std::make_shared<Lifecycle>(store, log, shard);
  return std::make_unique<Runner>([lifecycle] { return lifecycle->turn(); });
}

}  // namespace idem::workers
