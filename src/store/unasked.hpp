#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace idem {

/// Calls that a wrapper has not asked its store yet, because it reads something before. Safe from
/// any thread.
class Unasked {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

}  // namespace idem
