#include "loop/offload.hpp"

#include <pthread.h>

namespace idem {

Offload::Offload(const char* thread_name) : thread_([this, thread_name] { run(thread_name); }) {}

Offload::~Offload() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Offload::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_all();
}

void Offload::run(const char* thread_name) {
  ::pthread_setname_np(::pthread_self(), thread_name);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace idem
