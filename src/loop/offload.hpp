#pragma once

#include "loop/loop.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace idem {

/// A thread for what blocks, one thing after the other, so that a loop never does.
class Offload {
 public:
  using Job = std::move_only_function<void()>;

  explicit Offload(const char* thread_name);
  /// Runs what was posted to its end.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  void post(Job job);

 private:
  void run(const char* thread_name);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

template <class T>
struct RunOffloaded {
  Loop& loop;
  Offload& offload;
  std::function<T()>& work;
  void operator()(Resumption<T> answered) const {
    offload.post([&to = loop, work = std::move(work), answered = std::move(answered)]() mutable {
      answered.put(work());
      to.post([answered = std::move(answered)]() mutable { answered.go_on(); });
    });
  }
};

/// `co_await` of it, named, runs `work` there and resumes the calling coroutine on its own loop
/// with what it returned. `work` is moved from, and must not throw.
template <class T>
Wait<T, RunOffloaded<T>> run_offloaded(Loop& loop, Offload& offload, std::function<T()>& work) {
  return suspend<T>(RunOffloaded<T>{loop, offload, work});
}

}  // namespace idem
