#include "store/mysql/mysql_store.hpp"

#include "store/mysql/call_scheduler.hpp"
#include "store/mysql/transactions.hpp"
#include "store/sql_server/server_store.hpp"

#include <mysql.h>

#include <future>
#include <mutex>

namespace idem {
namespace {

using mysql::CallScheduler;
using mysql::Url;

class MysqlStore final : public sql_server::ServerStore<CallScheduler> {
 public:
  explicit MysqlStore(const Url& url) : ServerStore(url), url_(url) {}

 private:
  std::unique_ptr<Transactions> make_transactions() override {
    return mysql::make_mysql_transactions(
        {.url = url_,
         .store_id = scheduler().store_id(),
         .in_use = scheduler().in_use(),
         .ask = [this](StoreCall call) { return ask_and_block(std::move(call)); },
         .committed = [this](const StoreCall& call,
                             const StoreResult& result) { committed(call, result); }});
  }

  /// For a caller's thread.
  StoreResult ask_and_block(StoreCall what) {
    auto promise = std::make_shared<std::promise<StoreResult>>();
    auto answer = promise->get_future();
    call(std::move(what), [promise](StoreResult result) { promise->set_value(std::move(result)); });
    about_to_wait();
    return answer.get();
  }

  void committed(const StoreCall& what, const StoreResult& result) {
    mysql::CallResult noted{result};
    const auto* const outcome = result ? std::get_if<ReserveOutcome>(&*result) : nullptr;
    const auto* const execute = outcome != nullptr ? std::get_if<Execute>(outcome) : nullptr;
    noted.ended_lease = execute != nullptr && execute->ended_lease;
    note_committed(what, std::move(noted));
  }

  const Url url_;
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
