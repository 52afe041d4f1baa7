#pragma once

#include "loop/loop.hpp"

#include <idem/record.hpp>

#include <atomic>
#include <csignal>
#include <memory>
#include <vector>

namespace idem::cli {

/// The service manager that started this process, if it wants to be notified (NOTIFY_SOCKET and
/// WATCHDOG_USEC in the environment, sd_notify(3)); without one, nothing happens. One thread at a
/// time.
class ServiceManager {
 public:
  ServiceManager();

  /// The process serves; also after reloading().
  static void ready();
  /// It reads its settings again, or the next process is about to take its place.
  static void reloading();
  static void stopping();

  /// The loops that look() asks from now on.
  void watch(std::vector<Loop*> loops);
  /// Notifies the manager that the process is alive, once all loops have run what the look before
  /// posted to them, and posts again. The manager ends a process that stays silent.
  /// Most calls only read the clock.
  void look();
  /// The next of these blocked signals; looks as often as it must until then.
  int next_signal(const sigset_t& signals);

 private:
  bool is_watched_ = false;
  Millis interval_ = std::chrono::hours(1);
  MonotonicTime next_look_{};
  std::vector<Loop*> loops_;
  /// Loops that have not run it yet. Shared with what was posted, which may run after the end.
  std::shared_ptr<std::atomic<std::size_t>> silent_;
};

}  // namespace idem::cli
