#pragma once

#include "store/mysql/service_transaction.hpp"
#include "store/sql_server/sessions.hpp"

#include <idem/transaction.hpp>

#include <functional>
#include <memory>

namespace idem::mysql {

/// What the transactions of services need of their store.
struct TransactionsOf {
  Url url;
  StoreId store_id{};
  std::shared_ptr<ServerInUse> in_use{};
  /// The store's own answer to a call. Blocks.
  std::function<StoreResult(StoreCall)> ask;
  /// Called after each call that was committed here, on the thread of its caller.
  std::function<void(const StoreCall&, const StoreResult&)> committed;
};

/// Transactions of services, each on its caller's thread and on a session of its own.
///
/// A transaction locks its record first, and then runs the work. So a late owner does no work, no
/// other attempt can begin while the work runs, whatever its lease, and of two such transactions
/// the second waits while it holds nothing yet. Beside the work's statements it takes two round
/// trips: the admission, or the reserve of a new key, goes with the begin, and the owner's verb
/// with the COMMIT. Works may deadlock on business rows: the server ends one of them, which then
/// runs again.
///
/// A reserve of a key that is not new, has other names, or counts in a quota is the store's own and
/// commits before the work; work that then leaves nothing releases it.
std::unique_ptr<Transactions> make_mysql_transactions(TransactionsOf store);

}  // namespace idem::mysql
