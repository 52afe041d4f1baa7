#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace idem::segments {

/// A thread for work on files that no commit waits for. It does its jobs in their order.
class Background {
 public:
  using Job = std::move_only_function<void()>;

  Background();
  ~Background() { stop(); }

  /// Drops the jobs that have not begun.
  void stop();

  void post(Job job);
  /// Until it has done all jobs posted before. Not from one of them.
  void wait();

 private:
  void serve(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  std::deque<Job> jobs_;
  bool is_busy_ = false;
  std::jthread thread_;
};

}  // namespace idem::segments
