#include "workers/lifecycle.hpp"

#include "workers/failures.hpp"
#include "workers/forgetter.hpp"
#include "workers/pace.hpp"
#include "workers/reaper.hpp"
#include "workers/sweeper.hpp"

#include <idem/search_limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <optional>

namespace idem::workers {
namespace {

using Clock = std::chrono::steady_clock;

/// Sweeper or reaper, each at its own pace: how much is due for one says nothing about the other.
struct Worker {
  std::expected<Pass, StoreError> (*run_once)(Store&, const LogSink&, metrics::Shard&, std::size_t);
  Failures failures;
  Pace pace;
  Clock::time_point next{};
};

class Lifecycle {
 public:
  Lifecycle(Store& store, const LogSink& log, metrics::Shard& shard)
      : store_(store), log_(log), shard_(shard) {
    shard_.reap_due_since.set(Clock::now());
  }

  Pace::Duration turn() {
    work(sweeper_);
    const auto began = Clock::now();
    if (const auto reaped = work(reaper_)) {
      // Nothing that it left has been due for longer.
      const Pace::Duration late = reaper_.pace.leaves_some() ? reaped->late : Millis(0);
      shard_.reap_due_since.set(began - late);
      log_reaped(*reaped);
    }
    forget();
    shard_.lifecycle_turns.add();
    const auto next = std::min({sweeper_.next, reaper_.next, forget_at_});
    return std::max<Pace::Duration>(next - Clock::now(), {});
  }

 private:
  std::optional<Pass> work(Worker& worker) {
    const auto began = Clock::now();
    if (began < worker.next) return std::nullopt;
    const bool is_idle = idleness_.is_idle(store_.asked(), began);
    const auto pass = worker.run_once(store_, log_, shard_, worker.pace.slice(is_idle));
    const auto ended = Clock::now();
    worker.next = ended + worker.pace.rest_after(pass.value_or(Pass{}), ended - began, is_idle);
    if (pass) {
      worker.failures.succeeded(log_);
      return *pass;
    }
    worker.failures.failed(log_, pass.error().detail);
    return std::nullopt;
  }

  // What a search finds: nothing is waiting for it, so that it rests at least as long as it works.
  void forget() {
    const auto began = Clock::now();
    if (began < forget_at_) return;
    const auto more = forget_once(store_, shard_, limits::search_forget_slice);
    const auto ended = Clock::now();
    const auto rest = std::max<Pace::Duration>(ended - began, limits::search_forget_rest_min);
    forget_at_ = ended + (more.value_or(false) ? rest : limits::search_forget_interval);
    if (more) {
      forgetting_.succeeded(log_);
    } else {
      forgetting_.failed(log_, more.error().detail);
    }
  }

  // Logs the sum of several slices: one line each would be hundreds a second.
  void log_reaped(const Pass& pass) {
    reaped_ += pass.records;
    if (reaped_ == 0 || (reaper_.pace.leaves_some() && reaped_ < limits::reaped_per_line_max))
      return;
    log_(LogLevel::info, "reaped", {{"records", reaped_}});
    reaped_ = 0;
  }

  Store& store_;
  LogSink log_;
  metrics::Shard& shard_;
  Idleness idleness_;
  Worker sweeper_{sweep_once, Failures({"sweep_failed", "sweep_recovered"}),
                  Pace(store_.lifecycle_slice())};
  Worker reaper_{reap_once, Failures({"reap_failed", "reap_recovered"}),
                 Pace(store_.lifecycle_slice())};
  Failures forgetting_{{"forget_failed", "forget_recovered"}};
  Clock::time_point forget_at_{};
  std::size_t reaped_ = 0;  ///< Since the last line.
};

}  // namespace

std::unique_ptr<Runner> keep_lifecycle(Store& store, const LogSink& log, metrics::Shard& shard) {
  const auto lifecycle = std::make_shared<Lifecycle>(store, log, shard);
  return std::make_unique<Runner>([lifecycle] { return lifecycle->turn(); });
}

}  // namespace idem::workers
