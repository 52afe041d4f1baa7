#include "workers/runner.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace idem::workers {
namespace {

// Requests go first when the cores are busy. Threads that this one starts inherit the priority.
// Only on Linux it concerns this thread alone.
void lower_priority() noexcept {
  constexpr int nice_value = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice_value);
}

}  // namespace

Runner::Runner(std::vector<RunOnce> workers, Millis interval)
    : Runner([workers = std::move(workers), interval] {
        bool more = false;
        for (const auto& once : workers) more = once() || more;
        return std::chrono::nanoseconds(more ? Millis(0) : interval);
      }) {}

Runner::Runner(RunAndRest pass) : pass_(std::move(pass)), thread_([this] { run(); }) {}

Runner::~Runner() { stop(); }

void Runner::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Runner::run() {
  ::pthread_setname_np(::pthread_self(), "idem-workers");
  lower_priority();
  for (;;) {
    const auto rest = pass_();
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, rest, [this] { return stopping_; })) return;
  }
}

}  // namespace idem::workers
