#pragma once

#include <idem/open_store.hpp>

#include <expected>
#include <memory>
#include <string>

namespace idem {

struct PostgresOptions {
  /// Upgrade an older schema instead of refusing it. An empty database is set up without asking.
  bool migrate = false;
  std::function<void(const std::string&)> warn{};  ///< A sentence; on the store's thread.
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the store's thread.
  /// Of a store that is there no settings are asked for: for an upgrade. Nothing may be reserved.
  bool as_recorded = false;
};

/// The shared store: several gateways, one truth, in the schema `idem` of a PostgreSQL database
/// (13 or later). `uri` is libpq's, with several hosts if there are; what does not take writes is
/// passed over. Refused by name: settings of the server that forget what was committed, and a role
/// from which row-level security might hide a record, which would then run again.
///
/// Calls are asked together, one statement for all that wait; completions come on the store's
/// thread. While the database is out of reach calls are answered `unavailable` at once; one whose
/// answer was lost is asked again by its token, and answered `in_doubt` where that fails, too.
std::expected<std::unique_ptr<Store>, StoreError> open_postgres(const std::string& uri,
                                                                const IdentitySettings& settings,
                                                                const PostgresOptions& options);

}  // namespace idem
