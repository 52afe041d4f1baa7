#include "store/postgres/postgres_store.hpp"

#include "core/threads/no_waiting.hpp"
#include "core/transitions/verb_check.hpp"
#include "store/call_queue.hpp"
#include "store/change_notifier.hpp"
#include "store/postgres/call_scheduler.hpp"
#include "store/postgres/transactions.hpp"
#include "store/verb_traits.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace idem {
namespace {

using postgres::CallScheduler;
using postgres::Waiting;

class PostgresStore final : public Store {
 public:
  explicit PostgresStore(std::string uri)
      : uri_(std::move(uri)), scheduler_(loop_, uri_, changes_) {}

  ~PostgresStore() override {
    if (!thread_.joinable()) return;
    loop_.post([this] { scheduler_.close([this] { loop_.stop(); }); });
    about_to_wait();
    thread_.join();
  }

  std::expected<void, StoreError> open(const IdentitySettings& settings,
                                       const PostgresOptions& options) {
    thread_ = std::jthread([this] {
      const NoWaiting own_thread(is_store_thread);
      loop_.run("idem-store");
    });
    auto promise = std::make_shared<CallScheduler::Opening::element_type>();
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
    // The store's thread notifies waiters, as for its own calls.
    const auto committed = [this](const StoreCall& call, postgres::CallResult result) {
      loop_.post([this, call, result = std::move(result)]() mutable {
        scheduler_.note_result(call, std::move(result));
      });
    };
    transactions_.emplace(uri_, scheduler_.store_id(), scheduler_.lineage(), committed);
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

  Transactions* transactions() noexcept override { return &*transactions_; }

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

  const std::string uri_;
  Identity identity_;
  ChangeNotifier changes_;
  std::mutex mutex_;
  std::vector<Waiting> incoming_;
  std::vector<Waiting> taken_;  ///< Of the loop's thread only.
  Loop loop_;
  CallScheduler scheduler_;
  std::optional<postgres::PgTransactions> transactions_;
  std::jthread thread_;
};

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_postgres(const std::string& uri,
                                                                const IdentitySettings& settings,
                                                                const PostgresOptions& options) {
  auto store = std::make_unique<PostgresStore>(uri);
  const auto opened = store->open(settings, options);
  if (!opened) return std::unexpected(opened.error());
  return store;
}

}  // namespace idem
