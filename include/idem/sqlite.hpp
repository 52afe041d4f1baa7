#pragma once

#include <idem/open_store.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <memory>
#include <string>

struct sqlite3;

/// @file
/// For services whose records lie in SQLite and who talk to it themselves.
namespace idem::inline v0_1 {

/// The connection below a transaction, for a library that wants one; null where the records lie
/// elsewhere. Valid within the work that was given the transaction, on its thread, which is the
/// store's: everybody waits for it.
///
/// Statements on it are held to what Transaction::run() is (COMMIT, SAVEPOINT, PRAGMA, ATTACH and
/// the store's tables are refused when they are prepared), and see the same rows. One that fails
/// does not doom the transaction by itself: who goes on after it decides that, with fail(). When
/// the work returns, none of its statements may be in the middle of its rows: it is reset, and the
/// transaction rolled back. Prepared ones may be kept, and be finalized until the engine is gone.
///
/// The connection's set-up is the store's: no authorizer, no commit or WAL hook, no progress
/// handler, no checkpoint, no limits. Work that leaves another commit hook is rolled back.
sqlite3* sqlite_connection(Transaction& transaction) noexcept;

/// Opens the store on a connection that the service has opened and set up itself: functions,
/// collations, extensions, limits and pragmas stay as they are. Business tables may be there, and
/// records of such a store; where there are none, their tables are made beside the business's, and
/// application_id and user_version are the store's from then on. A file whose schema names
/// functions or collations of the service's can be opened in this way only.
///
/// On success the connection is the store's: its thread alone uses it, and it is closed with the
/// store. Authorizer, commit hook, WAL hook and progress handler are replaced by the store's own,
/// or none. After an error it is still the caller's, and nothing was changed. The error is a
/// sentence; refused is:
/// - what is no file, or has no locks, or cannot be written, or is not in UTF-8;
/// - a connection with a transaction or statement under way, or with other databases attached;
/// - one that was not set up for money to depend on it:
///       PRAGMA locking_mode = EXCLUSIVE;
///       PRAGMA journal_mode = WAL;
///       PRAGMA synchronous = FULL;        -- or EXTRA
///       PRAGMA wal_autocheckpoint = 0;    -- the store does that itself
///       PRAGMA foreign_keys = ON;
/// - a file that somebody else has open;
/// - all that open_store() refuses of a file.
///
/// The log is written as SQLite writes it, page by page, which is slower than a store that opened
/// its file itself.
[[nodiscard]] std::expected<std::unique_ptr<Store>, std::string> open_sqlite_on(
    sqlite3* connection, const IdentitySettings& identity, const OpenOptions& options = {});

}  // namespace idem::inline v0_1
