#pragma once

#include <idem/record.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace idem::workers {

/// One pass of a worker. True: there may be more to do at once.
using RunOnce = std::function<bool()>;

/// Runs its workers in turn on one thread, every `interval` and again at once while one has more to
/// do. stop() waits for the running pass.
class Runner {
 public:
  Runner(std::vector<RunOnce> workers, Millis interval);
  ~Runner();
  void stop();

 private:
  void run();

  std::vector<RunOnce> workers_;
  Millis interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace idem::workers
