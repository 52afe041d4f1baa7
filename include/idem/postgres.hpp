#pragma once

#include <idem/record.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <string>
#include <string_view>

struct pg_conn;

/// @file
/// For services with records in PostgreSQL that use libpq.
///
/// Transaction::run() prepares a statement at its second use in a session, if the statement returns
/// no rows and no pooler is in front of the server. After a change of a column's type it may fail
/// once in each session. A transaction that began with its reserve writes the record together with
/// its answer; until then only a statement that names the schema `idem` finds the record.
namespace idem::inline v0_1 {

/// A transaction's libpq connection, for a library that needs one; null if the records are in
/// another store or the connection was lost. The caller must neither end nor nest the transaction,
/// and must leave the connection as it was: no unread results, no pipeline, no session settings but
/// by SET LOCAL.
///
/// A failed statement on it dooms the transaction, as one of Transaction::run() does, whatever the
/// work returns or throws: the store reads the error from the connection, and runs the work again
/// after a deadlock, a serialization failure or a lock that was not free. For its SQLSTATE the
/// store sets the connection's PQsetErrorVerbosity to PQERRORS_VERBOSE while it is lent. Leave
/// that, and send no further statement after a failed one, or the store sees only that one's error.
///
/// If the work ends the transaction all the same, the store never reports it as committed: the
/// transaction ends `in_doubt`, its record becomes `unknown`, and its attempt is forgotten, because
/// rows may be there without the record's change.
pg_conn* postgres_connection(Transaction& transaction) noexcept;

/// An error of the SQL face.
struct [[nodiscard]] PostgresError {
  std::string sqlstate;  ///< docs/sql-face.md; empty: the connection is gone.
  std::string message;

  /// Another attempt has the record, or this one has ended: roll back, answer from the record.
  bool is_late() const noexcept { return sqlstate == "IDM01" || sqlstate == "IDM02"; }
};

/// Ends the attempt with an answer, in the open transaction of the caller's own connection to the
/// store's database. Blocks.
///
/// Only the caller's COMMIT makes the answer durable, together with the rows. After an error, also
/// is_late(), the transaction has failed, and its COMMIT rolls back. Refused (25P01) outside of a
/// transaction; nothing changes then. Waiters in this process are notified a moment later, as of
/// changes by other processes.
[[nodiscard]] std::expected<void, PostgresError> complete_on(
    pg_conn* connection, const RecordId& id, const AttemptRef& attempt,
    const StoredResponse& response, std::string_view upstream_reference = {});
/// As complete_on(): records that a phase committed.
[[nodiscard]] std::expected<void, PostgresError> advance_on(pg_conn* connection, const RecordId& id,
                                                            const AttemptRef& attempt,
                                                            std::string_view recovery_point);

}  // namespace idem::inline v0_1
