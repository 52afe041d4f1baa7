#include "cli/commands/hang_watch.hpp"

#include <idem/health_limits.hpp>
#include <idem/worker_limits.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace idem::cli {
namespace {

[[noreturn]] void give_up(ProcessLog& log, const char* event, const std::string& reason) {
  log.sink()(LogLevel::error, event, {{"reason", reason}});
  log.flush(limits::log_flush_max);
  std::_Exit(failed);
}

int readable_at_the_end() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  return ::signalfd(-1, &ends, SFD_CLOEXEC);
}

}  // namespace

// A signal is only looked at: it stays pending for the main thread.
StartWatch::StartWatch(ProcessLog& log)
    : log_(log), signal_came_(readable_at_the_end()), started_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { watch(); });
}

StartWatch::~StartWatch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(started_, &one, sizeof one);
  thread_.join();
  ::close(started_);
  ::close(signal_came_);
}

void StartWatch::watch() {
  constexpr MonotonicTime never = MonotonicTime::max();
  MonotonicTime says_at = MonotonicClock::now() + Millis(limits::start_quiet_max);
  MonotonicTime ends_at = never;
  for (;;) {
    const MonotonicTime now = MonotonicClock::now();
    if (now >= ends_at) {
      give_up(log_, "start_gave_up", "the start did not end after the signal to stop");
    }
    if (now >= says_at) {
      says_at = never;
      log_.sink()(LogLevel::warning, "start_waits",
                  {{"seconds", std::chrono::seconds(limits::start_quiet_max).count()},
                   {"reason",
                    "the store does not answer yet: it is large, or its disk or its "
                    "server hangs"}});
    }
    const MonotonicTime next = std::min({says_at, ends_at, now + Millis(std::chrono::hours(1))});
    const bool is_ending = ends_at != never;
    std::array<pollfd, 2> both{{{started_, POLLIN, 0}, {is_ending ? -1 : signal_came_, POLLIN, 0}}};
    ::poll(both.data(), both.size(), static_cast<int>((next - now).count()));
    if (both[0].revents != 0) return;
    if (both[1].revents != 0) ends_at = MonotonicClock::now() + Millis(limits::hang_end_max);
  }
}

EndWatch::EndWatch(ProcessLog& log, std::function<bool()> store_answers)
    : log_(log), store_answers_(std::move(store_answers)) {
  thread_ = std::thread([this] { watch(); });
}

EndWatch::~EndWatch() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void EndWatch::watch() {
  const auto began = MonotonicClock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    // A store may begin to hang while it is closed.
    if (ended_.wait_for(lock, limits::hang_end_max, [this] { return has_ended_; })) return;
    if (!store_answers_()) give_up(log_, "end_gave_up", "the store does not answer");
    if (MonotonicClock::now() - began >= Millis(limits::end_time_max)) {
      give_up(log_, "end_gave_up", "the process did not close in time");
    }
  }
}

}  // namespace idem::cli
