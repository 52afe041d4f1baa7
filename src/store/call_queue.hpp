#pragma once

#include "core/threads/turn.hpp"

#include <idem/store.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace idem {

struct StepContext;

/// Work other than a call that a store's thread does in its turn. The caller that pushed it waits
/// for it, and so keeps it alive.
class StoreTask {
 public:
  virtual ~StoreTask() = default;

  /// Makes its steps, if it makes them itself. False: the store's medium runs it.
  virtual bool make_steps(const StepContext& /*context*/) { return false; }

  /// Of what it stores, the part that may be large.
  virtual std::size_t bytes() const noexcept { return 0; }
  virtual bool reserves() const noexcept { return false; }
  virtual bool settles() const noexcept { return false; }

  /// The store's medium is gone. The task did not run.
  virtual void refuse(const std::string& why) = 0;
  /// The task ran, and no start may ever find its commit.
  virtual void lose(const std::string& why) = 0;

  /// The call that changed a record, and its result, for the watcher; null: none did.
  struct Change {
    StoreCall call;
    StoreResult result;
  };
  virtual const Change* change() const noexcept { return nullptr; }
};

struct QueuedCall {
  StoreCall call;
  StoreCompletion done;
  StoreTask* task = nullptr;  ///< Not null: done instead of `call`; `done` reports its commit.
};

/// The calls in front of a store's thread: many threads push, one takes. While that thread works on
/// a batch, the next batch gathers here, so groups form without a timer. A deferred call, for which
/// no client waits, joins the next batch, so it costs no commit of its own. If no other call comes
/// within limits::store_patience, the deferred calls make a batch.
class CallQueue {
 public:
  struct Batch {
    std::span<QueuedCall> calls;               ///< Valid until the next take().
    std::vector<StoreCompletion> turned_away;  ///< To be answered `unavailable`.
    bool last = false;                         ///< Closed, and nothing is left.
  };

  /// The queue refuses new work above limits::store_queue_max. It never refuses an owner's verb,
  /// because each belongs to an attempt that was admitted before.
  void push(StoreCall call, StoreCompletion done);
  /// Never refused: its caller is a thread that can do nothing else meanwhile.
  void push(StoreTask& task, StoreCompletion done);

  /// Waits until there is something, unless `wait` is false. Calls come in the order of push().
  Batch take(bool wait);

  void close();

  /// How many calls and tasks came for which a caller waits. From any thread.
  std::uint64_t asked() const noexcept { return asked_.load(std::memory_order_relaxed); }
  /// How many came at all, also those that are turned away. From any thread.
  std::uint64_t pushed() const noexcept { return pushed_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  /// Wakes the taker up.
  struct Bell final : Sleeper {
    std::condition_variable rung;
    void wake() noexcept override { rung.notify_one(); }
  };
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::vector<QueuedCall> incoming_;
  std::vector<QueuedCall> deferred_;  ///< The taker wakes up for these at deferred_until_.
  MonotonicTime deferred_until_{};
  std::vector<StoreCompletion> turned_away_;
  std::atomic<std::uint64_t> asked_{0};  ///< Written under the lock, as the next one.
  std::atomic<std::uint64_t> pushed_{0};
  std::size_t waiting_ = 0;  ///< incoming_, deferred_ and the rest of taken_.
  bool asleep_ = false;
  bool closed_ = false;

  // The taker's own.
  std::vector<QueuedCall> taken_;
  std::size_t next_ = 0;
};

/// The answer to a call that the queue refuses.
StoreResult queue_is_full();

}  // namespace idem
