#pragma once

#include "core/threads/turn.hpp"
#include "loop/asio_names.hpp"
#include "loop/task.hpp"

#include <idem/record.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace idem {

class Loop;

/// An object whose tick() the loop calls: deadlines, heartbeats, idle pools. Coarse on purpose:
/// a deadline costs a comparison a tick, not a timer operation a request. Loop's thread only.
class Timed {
 public:
  explicit Timed(Loop& loop);
  virtual ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  /// May not destroy another Timed; destroying or creating one happens after the tick, by posting.
  virtual void tick(MonotonicTime now) = 0;

 protected:
  Loop& loop_;

 private:
  friend class Loop;
  std::size_t slot_;
};

/// One event loop with its thread's state. All members except post() are for the loop's own thread,
/// or for a time when it does not run.
class Loop {
 public:
  using Job = std::move_only_function<void()>;

  static constexpr Millis tick_interval{25};

  Loop();
  ~Loop();

  /// For the files that open sockets or start timers; these include loop/asio.hpp.
  asio::io_context& context() noexcept;

  /// Runs `job` on the loop's thread. Safe from any thread; wakes another thread's loop up at the
  /// end of the caller's turn, once for all jobs of that time.
  void post(Job job);

  /// Starts a coroutine on this loop and counts it until it ends. Loop's thread only.
  void spawn(Task<void> task);
  /// The same, without counting it: nobody waits for its end, and one that is still suspended when
  /// the loop goes ends there. Loop's thread only.
  void spawn_beside(Task<void> task);
  /// Coroutines of spawn() that have not ended. Safe from any thread.
  std::size_t running() const noexcept { return running_.load(std::memory_order_acquire); }
  /// Grows with each tick while the loop runs (see LoopWatch). Safe from any thread.
  std::uint64_t ticks() const noexcept { return ticks_.load(std::memory_order_relaxed); }

  /// Suspends the calling coroutine.
  Task<void> sleep(Millis duration);

  /// `thread_name`: for tools that list threads; 15 bytes at most.
  void run(const char* thread_name = "idem-loop");
  void stop();

 private:
  friend class Timed;
  struct Reactor;
  struct Mailbox;
  class LoopTurn;

  void drain_mailbox();
  void arm_tick();
  void tick();

  // Coroutines that are still suspended end with the context, and their Timed parts unlist then: so
  // the list is declared before it, and outlives it.
  std::vector<Timed*> timed_;
  std::atomic<std::size_t> running_{0};
  std::atomic<std::uint64_t> ticks_{0};
  std::unique_ptr<Reactor> reactor_;
  std::vector<Job> draining_;

  std::mutex mailbox_mutex_;
  std::vector<Job> mailbox_;
  std::shared_ptr<Mailbox> bell_;
};

}  // namespace idem
