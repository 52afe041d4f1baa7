#include "store/redis/hybrid_store.hpp"

#include "core/threads/no_waiting.hpp"
#include "core/transitions/verb_check.hpp"
#include "store/redis/cache.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace idem {
namespace {

using redis::Cache;
using redis::Url;

/// The part of an owner's verb that the cache needs.
struct Ending {
  RecordId id;
  AttemptRef attempt;
  std::optional<StoredResponse> response{};
};

std::optional<Ending> ending_of(const StoreCall& call) {
  if (const auto* verb = std::get_if<Complete>(&call)) {
    return Ending{verb->id, verb->attempt, verb->response};
  }
  if (const auto* verb = std::get_if<Release>(&call)) return Ending{verb->id, verb->attempt};
  if (const auto* verb = std::get_if<MarkUnknown>(&call)) return Ending{verb->id, verb->attempt};
  if (const auto* verb = std::get_if<Renew>(&call)) return Ending{verb->id, verb->attempt};
  return std::nullopt;
}

class HybridStore final : public Store {
 public:
  HybridStore(std::unique_ptr<Store> truth, Url url, const HybridOptions& options)
      : cache_(loop_, std::move(url), truth->identity().scope_secret, options.clock,
               options.reply_max, options.warn),
        owned_truth_(std::move(truth)),
        truth_(*owned_truth_),
        thread_([this] {
          const NoWaiting own_thread(is_store_thread);
          loop_.run("idem-cache");
        }) {}

  ~HybridStore() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    // First all look-ups pass to the store, then the store answers all calls: after that nothing
    // uses the cache any more.
    wait_until([this] { return looking_ == 0; });
    owned_truth_.reset();
    wait_until([this] { return cache_.busy() == 0; });
    loop_.post([this] {
      cache_.close();
      loop_.stop();
    });
    about_to_wait();
    thread_.join();
  }

  void call(StoreCall what, StoreCompletion done) override {
    if (auto* verb = std::get_if<Reserve>(&what); verb != nullptr && enqueue(*verb, done)) return;
    drop_zero_fence(what);
    auto ending = ending_of(what);
    if (!ending) return truth_.call(std::move(what), std::move(done));
    truth_.call(std::move(what), [this, ending = std::move(*ending), asked = MonotonicClock::now(),
                                  done = std::move(done)](StoreResult result) mutable {
      if (result) note(std::move(ending), std::get<OwnerReply>(*result), asked);
      done(std::move(result));
    });
  }

  void watch(std::shared_ptr<Watcher> watcher) override { truth_.watch(std::move(watcher)); }

  const Identity& identity() const noexcept override { return truth_.identity(); }
  std::size_t lifecycle_slice() const noexcept override { return truth_.lifecycle_slice(); }

 private:
  struct Waiting {
    Reserve verb;
    StoreCompletion done;
  };

  /// False: the store is closing, or the cache is overloaded; nothing was moved from then.
  bool enqueue(Reserve& verb, StoreCompletion& done) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (closing_ || incoming_.size() >= limits::cache_puts_max) return false;
      wake = incoming_.empty();
      incoming_.push_back({std::move(verb), std::move(done)});
    }
    if (wake) loop_.post([this] { take(); });
    return true;
  }

  void take() {
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(incoming_);
    }
    for (Waiting& waiting : taken_) {
      ++looking_;
      loop_.spawn(serve(std::move(waiting.verb), std::move(waiting.done)));
    }
    taken_.clear();
  }

  Task<void> serve(Reserve verb, StoreCompletion done) {
    auto looking = cache_.look(verb);
    auto outcome = co_await std::move(looking);
    if (outcome) {
      done(StoreReply(std::move(*outcome)));
    } else {
      ask_truth(std::move(verb), std::move(done));
    }
    --looking_;
  }

  void ask_truth(Reserve verb, StoreCompletion done) {
    StoreCall asked(verb);
    truth_.call(std::move(asked), [this, at = cache_.asked_now(), verb = std::move(verb),
                                   done = std::move(done)](StoreResult result) mutable {
      // Posted before the caller can go on, so that the end of the attempt is noted after this.
      if (result) {
        loop_.post([this, at, verb = std::move(verb), outcome = std::get<ReserveOutcome>(*result)] {
          cache_.note_reserve(verb, outcome, at);
        });
      }
      if (!result && result.error().code == StoreError::Code::in_doubt) {
        loop_.post([this, id = verb.id] { cache_.note_doubt(id); });
      }
      done(std::move(result));
    });
  }

  void note(Ending ending, const OwnerReply& reply, MonotonicTime asked) {
    loop_.post([this, ending = std::move(ending), reply, asked]() mutable {
      cache_.note_owner(ending.id, ending.attempt, reply, std::move(ending.response), asked);
    });
  }

  /// Waits until `condition`, evaluated on the loop, holds. All that it waits for ends by itself.
  template <class Condition>
  void wait_until(Condition condition) {
    for (bool holds = false; !holds;) {
      // Shared, because the waiting thread may go on while set_value() still runs.
      auto promise = std::make_shared<std::promise<bool>>();
      auto answer = promise->get_future();
      loop_.post([this, promise, condition] {
        take();
        promise->set_value(condition());
      });
      about_to_wait();
      holds = answer.get();
      if (!holds) std::this_thread::sleep_for(limits::cache_close_interval);
    }
  }

  std::mutex mutex_;
  std::vector<Waiting> incoming_;
  bool closing_ = false;

  // The loop's own.
  std::vector<Waiting> taken_;
  std::size_t looking_ = 0;

  Loop loop_;
  Cache cache_;
  std::unique_ptr<Store> owned_truth_;
  Store& truth_;  ///< Valid also while it closes, and answers its last calls.
  std::jthread thread_;
};

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_hybrid(std::unique_ptr<Store> truth,
                                                              const std::string& fast_url,
                                                              const HybridOptions& options) {
  auto url = redis::parse_url(fast_url);
  if (!url) return std::unexpected(StoreError{StoreError::Code::refused, std::move(url.error())});
  if (auto tls = redis::make_tls_context(url->tls); !tls) {
    return std::unexpected(StoreError{StoreError::Code::refused, std::move(tls.error())});
  }
  return std::make_unique<HybridStore>(std::move(truth), std::move(*url), options);
}

}  // namespace idem
