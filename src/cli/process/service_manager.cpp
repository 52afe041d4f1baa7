#include "cli/process/service_manager.hpp"

#include <systemd/sd-daemon.h>

#include <ctime>

namespace idem::cli {

ServiceManager::ServiceManager() {
  std::uint64_t micros = 0;
  if (sd_watchdog_enabled(0, &micros) <= 0) return;
  is_watched_ = true;
  // Two looks make one notification: three fit into the time, should one be late.
  interval_ = std::chrono::ceil<Millis>(std::chrono::microseconds(micros / 6));
}

void ServiceManager::ready() { sd_notify(0, "READY=1"); }

// The time lets the manager tell this notification from one of a reload before.
void ServiceManager::reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto micros = static_cast<unsigned long long>(now.tv_sec) * 1'000'000 +
                      static_cast<unsigned long long>(now.tv_nsec) / 1'000;
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", micros);
}

void ServiceManager::stopping() { sd_notify(0, "STOPPING=1"); }

void ServiceManager::watch(std::vector<Loop*> loops) { loops_ = std::move(loops); }

void ServiceManager::look() {
  const MonotonicTime now = MonotonicClock::now();
  if (!is_watched_ || now < next_look_) return;
  next_look_ = now + interval_;
  if (silent_ && silent_->load() > 0) return;
  sd_notify(0, "WATCHDOG=1");
  silent_ = std::make_shared<std::atomic<std::size_t>>(loops_.size());
  for (Loop* const loop : loops_) {
    loop->post([silent = silent_] { silent->fetch_sub(1); });
  }
}

int ServiceManager::next_signal(const sigset_t& signals) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(interval_);
  const timespec pause{seconds.count(), (interval_ - seconds).count() * 1'000'000};
  for (;;) {
    look();
    const int signal = sigtimedwait(&signals, nullptr, &pause);
    if (signal > 0) return signal;
  }
}

}  // namespace idem::cli
