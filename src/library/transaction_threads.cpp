#include "library/transaction_threads.hpp"

#include <idem/limits.hpp>

#include <pthread.h>

namespace idem::library {

void TransactionThreads::run(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  if (jobs_.size() > idle_ && threads_.size() < limits::transaction_threads_max) {
    threads_.emplace_back([this] { work(); });
  }
  wake_.notify_one();
}

void TransactionThreads::work() {
  ::pthread_setname_np(::pthread_self(), "idem-work");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

void TransactionThreads::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace idem::library
