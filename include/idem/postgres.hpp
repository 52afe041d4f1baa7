#pragma once

#include <idem/record.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <string>
#include <string_view>

struct pg_conn;

/// @file
/// For services whose records lie in PostgreSQL and who talk libpq.
///
/// Transaction::run() prepares a statement from its second time in a session where it answers no
/// rows and no pooler stands before the server. Where a column has changed its type meanwhile, it
/// may fail once in each session. In the transaction of its own reserve a record is written with
/// its answer: until then a statement that names the schema `idem` finds it, and others do not.
namespace idem::inline v0_1 {

/// libpq's connection below a transaction, for a library that wants one; null where the records
/// lie elsewhere, or the connection was lost. It is in a transaction, which must be neither ended
/// nor nested, and must be left as it was met: no results unread, no pipeline, no session settings
/// but by SET LOCAL.
///
/// Work that ends the transaction all the same is never told as committed. Its record becomes
/// `unknown` and its attempt is forgotten, because rows may be there without it; the transaction
/// ends `in_doubt`.
pg_conn* postgres_connection(Transaction& transaction) noexcept;

/// Why the SQL face refused.
struct PostgresError {
  std::string sqlstate;  ///< docs/sql-face.md; empty: the connection is gone.
  std::string message;

  /// Another attempt has the record, or this one has ended: roll back, answer from the record.
  bool is_late() const noexcept { return sqlstate == "IDM01" || sqlstate == "IDM02"; }
};

/// Bring your own connection: ends the attempt with an answer, in the transaction that is open on
/// the caller's own connection to the store's database. Blocks.
///
/// Nothing is done yet when it is answered: the caller's COMMIT does it, together with the rows.
/// After an error the transaction is a failed one, and its COMMIT rolls back: also where the
/// attempt came too late. Refused (25P01) outside of a transaction, where nothing is done. Waiters
/// in this process hear of it as of what other processes do, a moment later.
[[nodiscard]] std::expected<void, PostgresError> complete_on(
    pg_conn* connection, const RecordId& id, const Attempt& attempt, const StoredResponse& response,
    std::string_view upstream_reference = {});
/// As complete_on(): notes that a phase committed.
[[nodiscard]] std::expected<void, PostgresError> advance_on(pg_conn* connection, const RecordId& id,
                                                            const Attempt& attempt,
                                                            std::string_view recovery_point);

}  // namespace idem::inline v0_1
