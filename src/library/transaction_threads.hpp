#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace idem::library {

/// A few threads for the transactions of callers that must not block. Each starts with its first
/// job.
class TransactionThreads {
 public:
  using Job = std::move_only_function<void()>;

  TransactionThreads() = default;
  ~TransactionThreads() { end(); }
  TransactionThreads(const TransactionThreads&) = delete;
  TransactionThreads& operator=(const TransactionThreads&) = delete;

  /// Runs a job on one of them, after the jobs before it; it must not throw. From any thread, and
  /// before end().
  void run(Job job);
  /// Runs all jobs, then ends the threads.
  void end();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace idem::library
