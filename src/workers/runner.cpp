#include "workers/runner.hpp"

#include <pthread.h>

namespace idem::workers {

Runner::Runner(std::vector<RunOnce> workers, Millis interval)
    : workers_(std::move(workers)), interval_(interval), thread_([this] { run(); }) {}

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
  for (;;) {
    bool more = false;
    for (const auto& once : workers_) more = once() || more;
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (!more && wake_.wait_for(lock, interval_, [this] { return stopping_; })) return;
  }
}

}  // namespace idem::workers
