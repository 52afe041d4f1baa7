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
  /// Receives what may be lost of a log whose end is torn, a sentence. On the caller's thread.
  std::function<void(const std::string&)> warn{};
  /// For an upgrade: skips the check of the settings if the store exists. The caller must not
  /// reserve.
  bool as_recorded = false;
  /// The file is a backup that becomes a store: what is not settled may have run since. It becomes
  /// unknown, messages count as perhaps delivered, and no fence comes twice.
  bool restored = false;
};

/// Opens the embedded store at `path`; creates it (mode 0600) if there is no file or an empty one.
/// One process at a time: the file is locked until the store is destroyed.
///
/// Refuses, with a message that names the path, a file that another process owns, that is no
/// database, corrupt, without its log or with a damaged one, or another program's, that has a newer
/// schema (or an older one without `migrate`), other identity settings than at its first start, or
/// another store id than `which` wants. It then changes nothing, and makes no file that `which`
/// does not allow.
///
/// Once open it fails closed: if a write or its fsync fails, or the file turns out to be corrupt,
/// it writes one line to stderr and aborts the process. The next start goes on from what is
/// durable.
std::expected<std::unique_ptr<Store>, StoreError> open_sqlite(const std::string& path,
                                                              const IdentitySettings& settings,
                                                              const SqliteOptions& options = {});

}  // namespace idem
