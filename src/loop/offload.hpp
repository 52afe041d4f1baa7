#pragma once

#include "loop/loop.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace idem {

/// Threads for jobs that block, because a loop may not. With one thread, jobs run one after the
/// other.
class Offload {
 public:
  using Job = std::move_only_function<void()>;

  explicit Offload(const char* thread_name, unsigned threads = 1);
  ~Offload() { end(); }
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  /// Parties that have jobs waiting take turns: a party with many jobs delays only its own.
  void post(Job job, std::string_view party = {});

  /// Returns when all posted jobs have run and the threads have ended. Later jobs run in post().
  void end();

 private:
  struct Line {
    std::string party;
    std::deque<Job> jobs;
  };
  void run(const char* thread_name);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Line> lines_;  ///< None is empty; the first one's turn is next.
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

template <class T>
struct RunOffloaded {
  Loop& loop;
  Offload& offload;
  std::function<T()>& work;
  std::string_view party;
  void operator()(Resumption<T> answered) const {
    offload.post(
        [&to = loop, work = std::move(work), answered = std::move(answered)]() mutable {
          answered.put(work());
          to.post([answered = std::move(answered)]() mutable { answered.go_on(); });
        },
        party);
  }
};

/// `co_await` of it, named, runs `work` there and resumes the calling coroutine on its own loop
/// with its result. `work` is moved from, and must not throw. Bind a std::expected by reference:
/// GCC 14 takes the alternatives of one that is moved into a coroutine's frame for uninitialised.
template <class T>
Wait<T, RunOffloaded<T>> run_offloaded(Loop& loop, Offload& offload, std::function<T()>& work,
                                       std::string_view party = {}) {
  return suspend<T>(RunOffloaded<T>{loop, offload, work, party});
}

}  // namespace idem
