#pragma once

#include "core/record/store_clock.hpp"

#include <idem/open_store.hpp>

#include <memory>
#include <optional>
#include <string>

namespace idem {

struct SqliteOptions {
  bool migrate = false;             ///< Upgrade an older schema; otherwise it is refused.
  std::optional<HostClock> host{};  ///< For tests; none: this machine's.
  std::string vfs{};                ///< For tests: name of a registered sqlite3_vfs.
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the caller's thread.
  /// Of a store that is there no settings are asked for: for an upgrade. Nothing may be reserved.
  bool as_recorded = false;
};

/// Opens the embedded store at `path`, creating it (mode 0600) where nothing or an empty file is.
/// One process at a time: the file is locked until the store is destroyed.
///
/// Refused, with a message that names the path: owned by another process, not a database, corrupt,
/// another program's, a newer schema (or an older one without `migrate`), other identity settings
/// than at its first start, not the store that `which` wants. Nothing is changed then, and no file
/// made that `which` does not allow.
///
/// Once open it fails closed: when a write or its fsync fails, or the file turns out to be corrupt,
/// one line goes to stderr and the process aborts; what is durable is the truth of the next start.
std::expected<std::unique_ptr<Store>, StoreError> open_sqlite(const std::string& path,
                                                              const IdentitySettings& settings,
                                                              const SqliteOptions& options = {});

}  // namespace idem
