#pragma once

#include "core/threads/no_waiting.hpp"
#include "core/transitions/verb_check.hpp"
#include "loop/loop.hpp"
#include "store/call_queue.hpp"
#include "store/change_notifier.hpp"
#include "store/verb_traits.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace idem {

/// A store whose calls are coroutines of a loop of its own, on a thread of its own; completions run
/// there. `Driver` answers the calls:
///  - it is made with the loop, the ChangeNotifier and the constructor's further arguments;
///  - `Task<std::expected<Identity, std::string>> open(IdentitySettings)`, once, before all calls;
///  - `Task<void> serve(StoreCall, StoreCompletion)`;
///  - `Task<void> flush()`, behind the last call: what it still has to write;
///  - `void close()`: its own tasks end by themselves from then on.
template <class Driver>
class LoopStore final : public Store {
 public:
  template <class... Arguments>
  explicit LoopStore(Arguments&&... arguments)
      : driver_(loop_, changes_, std::forward<Arguments>(arguments)...) {}

  ~LoopStore() override {
    if (!thread_.joinable()) return;
    loop_.post([this] {
      closing_ = true;
      end_if_idle();
    });
    about_to_wait();
    thread_.join();
  }

  std::expected<void, StoreError> open(const IdentitySettings& settings) {
    thread_ = std::jthread([this] {
      const NoWaiting own_thread(is_store_thread);
      loop_.run("idem-store");
    });
    // Shared, because the waiting thread may go on while set_value() still runs.
    auto promise = std::make_shared<Opening>();
    auto opened = promise->get_future();
    loop_.post([this, settings, promise] { loop_.spawn(open_driver(settings, promise)); });
    about_to_wait();
    auto identity = opened.get();
    if (!identity) {
      return std::unexpected(StoreError{StoreError::Code::refused, std::move(identity.error())});
    }
    identity_ = std::move(*identity);
    return {};
  }

  void call(StoreCall what, StoreCompletion done) override {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      wake = incoming_.empty();
      incoming_.push_back({std::move(what), std::move(done)});
    }
    if (wake) loop_.post([this] { take(); });
  }

  // On the store's thread, which also polls the awaited records.
  void watch(std::shared_ptr<Watcher> watcher) override {
    loop_.post([this, watcher = std::move(watcher)] { changes_.watch(watcher); });
  }

  const Identity& identity() const noexcept override { return identity_; }

 private:
  using Opening = std::promise<std::expected<Identity, std::string>>;

  Task<void> open_driver(IdentitySettings settings, std::shared_ptr<Opening> promise) {
    auto opening = driver_.open(std::move(settings));
    auto opened = co_await std::move(opening);
    promise->set_value(std::move(opened));
  }

  void take() {
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(incoming_);
    }
    for (QueuedCall& one : taken_) {
      if (auto bad = what_is_wrong(one.call)) {
        one.done(std::unexpected(StoreError{StoreError::Code::refused, std::move(*bad)}));
      } else if (serving_ >= limits::store_queue_max && traits_of(one.call).is_new_work) {
        one.done(queue_is_full());
      } else {
        ++serving_;
        loop_.spawn(serve(std::move(one)));
      }
    }
    taken_.clear();
    end_if_idle();
  }

  Task<void> serve(QueuedCall one) {
    Task<void> serving = driver_.serve(std::move(one.call), std::move(one.done));
    co_await std::move(serving);
    --serving_;
    end_if_idle();
  }

  // A call that a completion made is posted already, and so comes before this.
  void end_if_idle() {
    if (!closing_ || serving_ > 0) return;
    loop_.post([this] {
      if (serving_ > 0 || ending_) return;
      ending_ = true;
      loop_.spawn(end());
    });
  }

  Task<void> end() {
    Task<void> flushing = driver_.flush();
    co_await std::move(flushing);
    driver_.close();
    // The store's own tasks end by themselves once it is closed. 1: this coroutine itself.
    while (loop_.running() > 1) {
      Task<void> sleeping = loop_.sleep(limits::cache_close_interval);
      co_await std::move(sleeping);
    }
    loop_.stop();
  }

  Identity identity_;
  ChangeNotifier changes_;
  std::mutex mutex_;
  std::vector<QueuedCall> incoming_;

  // The loop's own, from here on.
  std::vector<QueuedCall> taken_;
  std::size_t serving_ = 0;
  bool closing_ = false;
  bool ending_ = false;
  Loop loop_;
  Driver driver_;
  std::jthread thread_;
};

/// Makes and opens one.
template <class Driver, class... Arguments>
std::expected<std::unique_ptr<Store>, StoreError> open_loop_store(const IdentitySettings& settings,
                                                                  Arguments&&... arguments) {
  auto store = std::make_unique<LoopStore<Driver>>(std::forward<Arguments>(arguments)...);
  const auto opened = store->open(settings);
  if (!opened) return std::unexpected(opened.error());
  return store;
}

}  // namespace idem
