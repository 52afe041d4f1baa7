#include "store/log/background.hpp"

#include <pthread.h>

#include <utility>

namespace idem::segments {

Background::Background() : thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void Background::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Background::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return jobs_.empty() && !is_busy_; });
}

void Background::serve(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "idem-sync");
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    if (stop.stop_requested()) break;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    is_busy_ = true;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    is_busy_ = false;
    if (jobs_.empty()) done_.notify_all();
  }
}

}  // namespace idem::segments
