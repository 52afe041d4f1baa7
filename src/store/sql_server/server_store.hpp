#pragma once

#include "core/threads/no_waiting.hpp"
#include "core/transitions/verb_check.hpp"
#include "loop/loop.hpp"
#include "store/call_queue.hpp"
#include "store/change_notifier.hpp"
#include "store/sql_server/waiting.hpp"
#include "store/verb_traits.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>
#include <idem/transaction.hpp>

#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace idem::sql_server {

/// A store on a database server: a thread of its own with a loop, on which `Scheduler` sends the
/// calls, and the transactions of services beside it.
///
/// `Scheduler` is made of the loop, the constructor's arguments and the ChangeNotifier, and has
/// `open()`, `add()`, `waiting()`, `wake_all()`, `note_result()`, `close()` and a static
/// `end_thread()`, the last that the thread does.
template <class Scheduler>
class ServerStore : public Store {
 public:
  template <class Address>
  explicit ServerStore(const Address& address) : scheduler_(loop_, address, changes_) {}

  ~ServerStore() override {
    if (!thread_.joinable()) return;
    loop_.post([this] { scheduler_.close([this] { loop_.stop(); }); });
    about_to_wait();
    thread_.join();
  }

  template <class Options>
  std::expected<void, StoreError> open(const IdentitySettings& settings, const Options& options) {
    thread_ = std::jthread([this] {
      const NoWaiting own_thread(is_store_thread);
      loop_.run("idem-store");
      Scheduler::end_thread();
    });
    auto promise = std::make_shared<typename Scheduler::Opening::element_type>();
    auto opened = promise->get_future();
    loop_.post([this, settings, options, promise = std::move(promise)] {
      loop_.spawn(scheduler_.open(settings, options, promise));
    });
    about_to_wait();
    auto identity = opened.get();
    if (!identity) {
      return std::unexpected(StoreError{StoreError::Code::refused, std::move(identity.error())});
    }
    identity_ = std::move(*identity);
    transactions_ = make_transactions();
    return {};
  }

  void call(StoreCall what, StoreCompletion done) override {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      wake = incoming_.empty();
      incoming_.push_back({std::move(what), std::move(done), MonotonicClock::now()});
    }
    if (wake) loop_.post([this] { take(); });
  }

  // On the store's thread, which polls the awaited records.
  void watch(std::shared_ptr<Watcher> watcher) override {
    loop_.post([this, watcher = std::move(watcher)] { changes_.watch(watcher); });
  }

  const Identity& identity() const noexcept override { return identity_; }
  std::size_t lifecycle_slice() const noexcept override { return limits::lifecycle_slice_sql; }
  Transactions* transactions() noexcept override { return transactions_.get(); }

 protected:
  /// Once it is open.
  virtual std::unique_ptr<Transactions> make_transactions() = 0;

  /// The result of a call that a caller's own transaction has committed: the store's thread
  /// notifies waiters, as for its own calls.
  void note_committed(const StoreCall& what, CallResult result) {
    loop_.post([this, what, result = std::move(result)] { scheduler_.note_result(what, result); });
  }
  const Scheduler& scheduler() const noexcept { return scheduler_; }

 private:
  void take() {
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(incoming_);
    }
    for (Waiting& waiting : taken_) {
      if (auto bad = what_is_wrong(waiting.call)) {
        waiting.done(std::unexpected(StoreError{StoreError::Code::refused, std::move(*bad)}));
      } else if (scheduler_.waiting() >= limits::store_queue_max &&
                 traits_of(waiting.call).is_new_work) {
        waiting.done(queue_is_full());
      } else {
        scheduler_.add(std::move(waiting));
      }
    }
    taken_.clear();
    scheduler_.wake_all();
  }

  Identity identity_;
  ChangeNotifier changes_;
  std::mutex mutex_;
  std::vector<Waiting> incoming_;
  std::vector<Waiting> taken_;  ///< Of the loop's thread only.
  Loop loop_;
  Scheduler scheduler_;
  std::unique_ptr<Transactions> transactions_;
  std::jthread thread_;
};

}  // namespace idem::sql_server
