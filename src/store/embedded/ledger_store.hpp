#pragma once

#include "store/change_notifier.hpp"
#include "store/embedded/ledger.hpp"

#include <idem/limits.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace idem::embedded {

/// A store that one process owns, and its thread. The thread makes the steps of the calls that
/// waited while it was busy in one transaction, and answers them once that is durable.
class LedgerStore : public Store {
 public:
  explicit LedgerStore(LedgerParts parts);
  /// Answers what was asked, closes the ledger, and joins the thread. A derived class calls close()
  /// in its own destructor: a completion may ask the store until the thread has ended, and must
  /// find the object whole.
  ~LedgerStore() override;

  void call(StoreCall what, StoreCompletion done) override {
    queue_.push(std::move(what), std::move(done));
  }
  void watch(std::shared_ptr<Watcher> watcher) override { changes_.watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return identity_; }
  std::size_t lifecycle_slice() const noexcept override { return limits::lifecycle_slice_embedded; }
  std::optional<std::uint64_t> asked() const noexcept override { return queue_.asked(); }

  /// `done` reports the commit of the task.
  void run(std::shared_ptr<StoreTask> task, StoreCompletion done);
  /// How many calls and tasks came, and of how many the completion has returned. From any thread.
  std::uint64_t came() const noexcept { return queue_.pushed(); }
  std::uint64_t answered() const noexcept { return answered_.load(std::memory_order_acquire); }

 protected:
  /// Once or more.
  void close();
  /// Waits until the task is done and its transaction durable. False: not run, because the caller's
  /// thread would wait for itself (why_not_to_wait()).
  bool run_and_wait(StoreTask& task);

 private:
  /// A listing may read the whole table, so it goes on in slices between the batches.
  struct Listing {
    List verb;
    StoreCompletion done;
    std::vector<Record> found;
  };

  void serve();
  void run_batch(std::span<QueuedCall> calls);
  void make_steps(std::span<QueuedCall> calls);
  void refuse(std::span<QueuedCall> calls);
  void lose(std::span<QueuedCall> calls);
  void answer(std::span<QueuedCall> calls);
  void go_on_listing();
  StoreResult unavailable() const;
  void note_answered(std::size_t count) noexcept {
    answered_.fetch_add(count, std::memory_order_release);
  }

  Identity identity_;
  CallQueue queue_;
  ChangeNotifier changes_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<StoreResult> results_;
  std::deque<Listing> listings_;
  std::atomic<std::uint64_t> answered_{0};
  std::string lost_;  ///< Why no commit is durable now; empty: commits are.
  std::jthread thread_;
};

}  // namespace idem::embedded
