#pragma once

#include <idem/limits.hpp>
#include <idem/store.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

namespace idem {

/// Something else that a store's thread does in its turn, besides calls. Whoever asked for it waits
/// for it, and so keeps it alive.
class StoreTask {
 public:
  virtual ~StoreTask() = default;
};

struct QueuedCall {
  StoreCall call;
  StoreCompletion done;
  StoreTask* errand = nullptr;  ///< Instead of `call`; `done` says then that it was committed.
};

/// What waits in front of a store's thread: many threads ask, one takes. While that one is busy
/// with a batch, the next batch gathers here; so groups form without a timer. What no client waits
/// for comes along with the next batch, so that it costs no commit of its own; where none is asked
/// for within limits::store_patience, it is one.
class CallQueue {
 public:
  struct Batch {
    std::span<QueuedCall> calls;               ///< Valid until the next take().
    std::vector<StoreCompletion> turned_away;  ///< To be answered `unavailable`.
    bool last = false;                         ///< Closed, and nothing is left.
  };

  /// New work above limits::store_queue_max is turned away; the owners' verbs never are, because
  /// each belongs to an attempt that was let in before.
  void push(StoreCall call, StoreCompletion done);
  /// Never turned away: its caller is a thread that can do nothing else meanwhile.
  void push(StoreTask& errand, StoreCompletion done);

  /// Waits until there is something, unless `wait` is false. Calls come in the order of push().
  Batch take(bool wait);

  void close();

  /// How many of those came that somebody waits for. From any thread.
  std::uint64_t asked() const noexcept { return asked_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<QueuedCall> incoming_;
  std::vector<QueuedCall> deferred_;  ///< For these the taker wakes up by itself.
  MonotonicTime patient_until_{};
  std::vector<StoreCompletion> turned_away_;
  std::atomic<std::uint64_t> asked_{0};  ///< Written under the lock.
  std::size_t waiting_ = 0;              ///< incoming_, deferred_ and what is left of taken_.
  bool asleep_ = false;
  bool closed_ = false;

  // The taker's own.
  std::vector<QueuedCall> taken_;
  std::size_t next_ = 0;
};

/// What is told to those who were turned away.
StoreResult queue_is_full();

}  // namespace idem
