#include "store/postgres/postgres_store.hpp"

#include "store/postgres/call_scheduler.hpp"
#include "store/postgres/transactions.hpp"
#include "store/sql_server/server_store.hpp"

namespace idem {
namespace {

using postgres::CallScheduler;

class PostgresStore final : public sql_server::ServerStore<CallScheduler> {
 public:
  explicit PostgresStore(std::string uri) : ServerStore(uri), uri_(std::move(uri)) {}

 private:
  std::unique_ptr<Transactions> make_transactions() override {
    return std::make_unique<postgres::PgTransactions>(
        uri_, scheduler().store_id(), scheduler().lineage(),
        [this](const StoreCall& call, postgres::CallResult result) {
          note_committed(call, std::move(result));
        });
  }

  const std::string uri_;
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
