#include "store/mysql/mysql_store.hpp"

#include "core/threads/no_waiting.hpp"
#include "core/transitions/verb_check.hpp"
#include "store/call_queue.hpp"
#include "store/change_notifier.hpp"
#include "store/mysql/call_scheduler.hpp"
#include "store/mysql/transactions.hpp"
#include "store/verb_traits.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <mysql.h>

#include <future>
#include <mutex>
#include <thread>

namespace idem {
namespace {

using mysql::CallScheduler;
using mysql::Url;
using mysql::Waiting;

class MysqlStore final : public Store {
 public:
  explicit MysqlStore(const Url& url) : url_(url), scheduler_(loop_, url, changes_) {}

  ~MysqlStore() override {
    if (!thread_.joinable()) return;
    loop_.post([this] { scheduler_.close([this] { loop_.stop(); }); });
    about_to_wait();
    thread_.join();
  }

  std::expected<void, StoreError> open(const IdentitySettings& settings,
                                       const MysqlOptions& options) {
    thread_ = std::jthread([this] {
      const NoWaiting own_thread(is_store_thread);
      loop_.run("idem-store");
      mysql_thread_end();
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
    transactions_ = mysql::make_mysql_transactions(
        {.url = url_,
         .store_id = scheduler_.store_id(),
         .in_use = scheduler_.in_use(),
         .ask = [this](StoreCall call) { return ask_and_block(std::move(call)); },
         .committed = [this](const StoreCall& call,
                             const StoreResult& result) { note_committed(call, result); }});
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

 private:
  /// For a caller's thread.
  StoreResult ask_and_block(StoreCall what) {
    auto promise = std::make_shared<std::promise<StoreResult>>();
    auto answer = promise->get_future();
    call(std::move(what), [promise](StoreResult result) { promise->set_value(std::move(result)); });
    about_to_wait();
    return answer.get();
  }

  // The store's thread notifies waiters, as for its own calls.
  void note_committed(const StoreCall& what, const StoreResult& result) {
    mysql::CallResult noted{result};
    const auto* const outcome = result ? std::get_if<ReserveOutcome>(&*result) : nullptr;
    const auto* const execute = outcome != nullptr ? std::get_if<Execute>(outcome) : nullptr;
    noted.ended_lease = execute != nullptr && execute->ended_lease;
    loop_.post([this, what, noted = std::move(noted)] { scheduler_.note_result(what, noted); });
  }

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

  const Url url_;
  Identity identity_;
  ChangeNotifier changes_;
  std::mutex mutex_;
  std::vector<Waiting> incoming_;
  std::vector<Waiting> taken_;  ///< Of the loop's thread only.
  Loop loop_;
  CallScheduler scheduler_;
  std::unique_ptr<Transactions> transactions_;
  std::jthread thread_;
};

/// The library's own set-up is not safe from several threads.
void set_up_library() {
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
}

}  // namespace

std::expected<void, std::string> check_mysql_url(const std::string& url) {
  const auto parsed = mysql::parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  return {};
}

std::expected<std::unique_ptr<Store>, StoreError> open_mysql(const std::string& url,
                                                             const IdentitySettings& settings,
                                                             const MysqlOptions& options) {
  auto parsed = mysql::parse_url(url);
  if (!parsed) {
    return std::unexpected(StoreError{StoreError::Code::refused, std::move(parsed.error())});
  }
  set_up_library();
  auto store = std::make_unique<MysqlStore>(*parsed);
  const auto opened = store->open(settings, options);
  if (!opened) return std::unexpected(opened.error());
  return store;
}

}  // namespace idem
