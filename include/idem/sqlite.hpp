#pragma once

#include <idem/open_store.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <memory>
#include <string>

struct sqlite3;

/// @file
/// For services with records in SQLite that use its C API.
namespace idem::inline v0_1 {

/// A transaction's connection, for a library that needs one; null if the records are in another
/// store. Valid within the work that received the transaction, on its thread. That is the store's
/// thread: all other calls wait for it.
///
/// Statements on it have the limits of Transaction::run() (SQLite refuses to prepare COMMIT,
/// SAVEPOINT, PRAGMA, ATTACH and the store's tables), and see the same rows. A failed statement
/// does not doom the transaction by itself; the work decides that, with fail(sqlite3_errmsg(...)):
/// its answer, the log and a NotCommitted then have that text. When the work
/// returns, none of its statements may be in the middle of its rows: the store would reset it and
/// roll the transaction back. Prepared statements may be kept; finalize them before the engine is
/// destroyed.
///
/// The store owns the connection's set-up: set no authorizer, commit hook, WAL hook, progress
/// handler or limits, and make no checkpoint. The store rolls work back that leaves another commit
/// hook.
sqlite3* sqlite_connection(Transaction& transaction) noexcept;

/// Opens the store on a connection that the service has opened and set up itself: functions,
/// collations, extensions, limits and pragmas stay as they are. The database may hold business
/// tables, and a store's tables with records; if the latter are missing, the store makes them, and
/// owns application_id and user_version from then on. A file whose schema names functions or
/// collations of the service can be opened in this way only.
///
/// On success the store owns the connection: only its thread uses it, and it closes it. The store
/// replaces authorizer, commit hook, WAL hook and progress handler by its own, or by none. After an
/// error the connection is still the caller's, and nothing was changed. The error is a sentence.
/// The store refuses:
/// - a database that is no file, has no locks, cannot be written, or is not in UTF-8;
/// - a connection with a transaction or statement under way, or with other databases attached;
/// - a connection without these settings:
///       PRAGMA locking_mode = EXCLUSIVE;
///       PRAGMA journal_mode = WAL;
///       PRAGMA synchronous = FULL;        -- or EXTRA
///       PRAGMA wal_autocheckpoint = 0;    -- the store does that itself
///       PRAGMA foreign_keys = ON;
/// - a file that another connection has open;
/// - a file that open_store() refuses.
///
/// SQLite writes the log here, page by page, which is slower than in a store that opened its file
/// itself.
[[nodiscard]] std::expected<std::unique_ptr<Store>, std::string> open_sqlite_on(
    sqlite3* connection, const IdentitySettings& identity, const OpenOptions& options = {});

}  // namespace idem::inline v0_1
