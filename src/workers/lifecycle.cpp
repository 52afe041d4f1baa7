#include "workers/lifecycle.hpp"

#include "workers/pace.hpp"
#include "workers/reaper.hpp"
#include "workers/sweeper.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <optional>

namespace idem::workers {
namespace {

using Clock = std::chrono::steady_clock;

/// Sweeper or reaper, each at a pace of its own: what is due of one says nothing of the other.
struct Worker {
  std::size_t (*run_once)(Store&, const LogSink&, metrics::Shard&, std::size_t);
  Pace pace;
  Clock::time_point next{};
};

class Lifecycle {
 public:
  Lifecycle(Store& store, const LogSink& log, metrics::Shard& shard)
      : store_(store), log_(log), shard_(shard) {}

  Pace::Duration turn() {
    work(sweeper_);
    const auto reaped = work(reaper_);
    if (reaped) tell(*reaped);
    return std::max<Pace::Duration>(std::min(sweeper_.next, reaper_.next) - Clock::now(), {});
  }

 private:
  struct Pass {
    std::size_t records = 0;
    bool full = false;
  };

  std::optional<Pass> work(Worker& worker) {
    const auto began = Clock::now();
    if (began < worker.next) return std::nullopt;
    const std::size_t slice = worker.pace.slice();
    const std::size_t records = worker.run_once(store_, log_, shard_, slice);
    const bool full = records >= slice;
    const auto ended = Clock::now();
    worker.next = ended + worker.pace.rest_after(ended - began, full);
    return Pass{records, full};
  }

  // A line for each slice would be hundreds a second.
  void tell(const Pass& pass) {
    reaped_ += pass.records;
    if (reaped_ == 0 || (pass.full && reaped_ < limits::reaped_told)) return;
    log_(LogLevel::info, "reaped", {{"records", reaped_}});
    reaped_ = 0;
  }

  Store& store_;
  LogSink log_;
  metrics::Shard& shard_;
  Worker sweeper_{sweep_once, Pace(store_.lifecycle_slice())};
  Worker reaper_{reap_once, Pace(store_.lifecycle_slice())};
  std::size_t reaped_ = 0;  ///< Since the last line.
};

}  // namespace

std::unique_ptr<Runner> keep_lifecycle(Store& store, const LogSink& log, metrics::Shard& shard) {
  const auto lifecycle = std::make_shared<Lifecycle>(store, log, shard);
  return std::make_unique<Runner>([lifecycle] { return lifecycle->turn(); });
}

}  // namespace idem::workers
