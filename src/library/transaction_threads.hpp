#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace idem::library {

/// A few threads for the transactions of those who may not block. Each is started when there is
/// work for it.
class TransactionThreads {
 public:
  using Job = std::move_only_function<void()>;

  TransactionThreads() = default;
  ~TransactionThreads() { end(); }
  TransactionThreads(const TransactionThreads&) = delete;
  TransactionThreads& operator=(const TransactionThreads&) = delete;

  /// Runs it on one of them, after those that were given before; it must not throw. From any
  /// thread, and before end().
  void run(Job job);
  /// Once everything was run.
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
