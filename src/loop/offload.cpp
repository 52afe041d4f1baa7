#include "loop/offload.hpp"

#include <pthread.h>

#include <algorithm>

namespace idem {

Offload::Offload(const char* thread_name, unsigned threads) {
  for (unsigned n = 0; n < threads; ++n) {
    threads_.emplace_back([this, thread_name] { run(thread_name); });
  }
}

void Offload::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Offload::post(Job job, std::string_view party) {
  {
    std::unique_lock lock(mutex_);
    if (ending_) {
      lock.unlock();
      return job();
    }
    auto line = std::ranges::find(lines_, party, &Line::party);
    if (line == lines_.end()) line = lines_.insert(line, {std::string(party), {}});
    line->jobs.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Offload::run(const char* thread_name) {
  ::pthread_setname_np(::pthread_self(), thread_name);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !lines_.empty(); });
    if (lines_.empty()) return;
    Line& line = lines_.front();
    Job job = std::move(line.jobs.front());
    line.jobs.pop_front();
    if (line.jobs.empty()) {
      lines_.pop_front();
    } else {
      lines_.splice(lines_.end(), lines_, lines_.begin());
    }
    lock.unlock();
    job();
    job = nullptr;  // What it holds may post at its end.
    lock.lock();
  }
}

}  // namespace idem
