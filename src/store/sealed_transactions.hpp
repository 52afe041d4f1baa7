#pragma once

#include "store/attempt_scopes.hpp"
#include "store/scope_sealing.hpp"
#include "store/sealing_keys.hpp"

#include <idem/transaction.hpp>

namespace idem {

/// The transactions of a store's services: seals the answer that a work returns, and opens the one
/// that a reserve finds. All else goes to the store below as it is.
class SealedTransactions final : public Transactions {
 public:
  /// All of them outlive this.
  SealedTransactions(Store& inner, Transactions& transactions, const SealingKeys& keys,
                     AttemptScopes& scopes, ScopeSealing& scoped)
      : inner_(inner), transactions_(transactions), keys_(keys), scopes_(scopes), scoped_(scoped) {}

  TransactionEnd run(InTransaction what) override;
  using Transactions::run;
  std::expected<SqlRows, std::string> run(std::string_view sql,
                                          std::span<const SqlValue> values) override {
    return transactions_.run(sql, values);
  }

 protected:
  std::expected<SqlRows, std::string> run_internal(InternalStatement which,
                                                   std::span<const SqlValue> values) override;

 private:
  std::expected<std::string, TransactionEnd> scope_for(const InTransaction& what);
  std::expected<Ring, StoreError> read_keys(const std::string& scope, const RecordId& id);
  Opened open(Replay& replay, const std::string& scope);

  Store& inner_;
  Transactions& transactions_;
  const SealingKeys& keys_;
  AttemptScopes& scopes_;
  ScopeSealing& scoped_;
};

}  // namespace idem
