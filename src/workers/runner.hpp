#pragma once

#include <idem/record.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace idem::workers {

/// One pass of a worker. True: there may be more to do, so the next pass follows at once.
using RunOnce = std::function<bool()>;
/// One pass; returns how long to rest before the next one.
using RunAndRest = std::function<std::chrono::nanoseconds()>;

/// Runs passes on one thread of its own at a lower priority than requests (nice 10). stop() waits
/// for a running pass and ends a rest.
class Runner {
 public:
  /// Runs all workers in turn every `interval`, and again at once while one has more to do.
  Runner(std::vector<RunOnce> workers, Millis interval);
  explicit Runner(RunAndRest pass);
  ~Runner();
  void stop();

 private:
  void run();

  RunAndRest pass_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace idem::workers
