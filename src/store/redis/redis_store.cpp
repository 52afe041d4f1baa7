#include "store/redis/redis_store.hpp"

#include "core/record/no_waiting.hpp"
#include "core/transitions/verb_check.hpp"
#include "store/call_queue.hpp"
#include "store/redis/store_driver.hpp"
#include "store/verb_traits.hpp"

#include <idem/limits.hpp>

#include <future>
#include <mutex>
#include <thread>

namespace idem {
namespace {

using redis::StoreDriver;
using redis::Url;

class RedisStore final : public Store {
 public:
  RedisStore(Url url, const RedisOptions& options)
      : driver_(loop_, std::move(url), options, changes_) {}

  ~RedisStore() override {
    if (!thread_.joinable()) return;
    loop_.post([this] {
      closing_ = true;
      end_if_idle();
    });
    thread_.join();
  }

  std::expected<void, StoreError> open(const IdentitySettings& settings) {
    thread_ = std::jthread([this] {
      const NoWaiting own_thread(is_store_thread);
      loop_.run("idem-store");
    });
    using Opening = std::promise<std::expected<Identity, std::string>>;
    // Shared, because the waiting thread may go on while set_value() still runs.
    auto promise = std::make_shared<Opening>();
    auto opened = promise->get_future();
    loop_.post([this, settings, promise] { loop_.spawn(open_driver(settings, promise)); });
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
  template <class Promise>
  Task<void> open_driver(IdentitySettings settings, std::shared_ptr<Promise> promise) {
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
      if (serving_ > 0) return;
      driver_.close();
      stop_when_quiet();
    });
  }

  // The store's own tasks end by themselves once connections are closed.
  void stop_when_quiet() { loop_.spawn(stop_quietly()); }

  Task<void> stop_quietly() {
    // 1: this coroutine itself.
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
  Loop loop_;
  StoreDriver driver_;
  std::jthread thread_;
};

}  // namespace

std::expected<void, std::string> check_redis_url(const std::string& url) {
  const auto parsed = redis::parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  return {};
}

std::expected<std::unique_ptr<Store>, StoreError> open_redis(const std::string& url,
                                                             const IdentitySettings& settings,
                                                             const RedisOptions& options) {
  auto parsed = redis::parse_url(url);
  if (!parsed) {
    return std::unexpected(StoreError{StoreError::Code::refused, std::move(parsed.error())});
  }
  auto store = std::make_unique<RedisStore>(std::move(*parsed), options);
  const auto opened = store->open(settings);
  if (!opened) return std::unexpected(opened.error());
  return store;
}

}  // namespace idem
