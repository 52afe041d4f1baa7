#pragma once

#include <idem/open_store.hpp>

#include <expected>
#include <memory>
#include <string>

namespace idem {

struct PostgresOptions {
  /// Upgrade an older schema instead of refusing it. An empty database always gets the schema.
  bool migrate = false;
  std::function<void(const std::string&)> warn{};  ///< A sentence; on the store's thread.
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the store's thread.
  /// For an upgrade: open an existing store without settings. Nothing may be reserved then.
  bool as_recorded = false;
};

/// Opens the shared store: one truth for several gateways, in the schema `idem` of a PostgreSQL
/// database (14 or later). `uri` is libpq's, also with several hosts; servers that accept no writes
/// are passed over. Refuses a server whose settings forget commits, and a role from which row-level
/// security might hide a record, which would then run again.
///
/// One statement carries all waiting calls of a kind; completions come on the store's thread. While
/// the database is out of reach, calls get `unavailable` at once. A call whose reply was lost is
/// repeated by its token, and gets `in_doubt` if that fails, too.
std::expected<std::unique_ptr<Store>, StoreError> open_postgres(const std::string& uri,
                                                                const IdentitySettings& settings,
                                                                const PostgresOptions& options);

}  // namespace idem
