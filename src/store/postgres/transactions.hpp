#pragma once

#include "store/postgres/service_transaction.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/statements.hpp"
#include "store/sql_server/sessions.hpp"

#include <idem/transaction.hpp>

#include <functional>

namespace idem::postgres {

/// Transactions of services, each on its caller's thread and on a session of its own.
///
/// A transaction locks its record first (the row, or for a new key the lock of its id), and then
/// runs the work. So a late owner does no work, no other attempt can begin while the work runs,
/// whatever its lease, and of two such transactions the second waits while it holds nothing yet.
/// The store's own statements wait for no row and no id (40_reserve.sql, 33_owners.sql), and the
/// start of a generation gives up its wait after 100 ms, so they are in no deadlock. Works may
/// deadlock on business rows: PostgreSQL ends one of them, which then runs again from the start.
class PgTransactions final : public Transactions {
 public:
  /// Called after each call that was committed, on the thread of its caller.
  using Committed = std::function<void(const StoreCall&, CallResult)>;

  PgTransactions(std::string uri, const Uuid& store_id, std::shared_ptr<Lineage> lineage,
                 Committed committed)
      : sessions_(std::move(uri), store_id, std::move(lineage)), committed_(std::move(committed)) {}

  TransactionEnd run(InTransaction what) override;
  using Transactions::run;
  std::expected<SqlRows, std::string> run(std::string_view sql,
                                          std::span<const SqlValue> values) override;

 protected:
  std::expected<SqlRows, std::string> run_internal(InternalStatement which,
                                                   std::span<const SqlValue> values) override;

 private:
  std::variant<TransactionEnd, NotAdmitted> try_once(InTransaction& what);
  std::expected<SqlRows, std::string> ask_alone(std::string_view sql,
                                                std::span<const SqlValue> values);

  sql_server::Sessions<Session> sessions_;
  Committed committed_;
};

}  // namespace idem::postgres
