#pragma once

#include "store/postgres/service_transaction.hpp"
#include "store/postgres/sessions.hpp"
#include "store/postgres/statements.hpp"

#include <idem/transaction.hpp>

#include <functional>

namespace idem::postgres {

/// Transactions of services, each on its caller's thread and a session of its own.
///
/// The record comes first: its row is locked (a new key: the lock of its id), and only then does
/// the work run. So an owner who came too late does no work, nobody can take the record over while
/// the work runs, however long its lease, and two of these meet at the record, where the second
/// holds nothing yet. No ring of locks goes through the store's own statements, as none of them
/// waits for a row or an id (40_reserve.sql, 33_owners.sql); who takes a new generation's lock
/// gives up after 100 ms. Rings among business rows are the works' own: PostgreSQL ends one of
/// them, which is then run again from the start.
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
  std::expected<SqlRows, std::string> run_own(OwnStatement which,
                                              std::span<const SqlValue> values) override;

 private:
  std::variant<TransactionEnd, NotAdmitted> try_once(InTransaction& what);
  std::expected<SqlRows, std::string> ask_alone(std::string_view sql,
                                                std::span<const SqlValue> values);

  Sessions sessions_;
  Committed committed_;
};

}  // namespace idem::postgres
