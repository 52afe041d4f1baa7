#pragma once

#include <idem/record.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <string>
#include <string_view>

struct st_mysql;

/// @file
/// For services with records in MariaDB or MySQL that use the C API of its client library.
namespace idem::inline v0_1 {

/// A transaction's connection (a `MYSQL*`), for a library that needs one; null if the records are
/// in another store or the connection was lost. The caller must neither end nor nest the
/// transaction, and must leave the connection as it was: no unread results, no settings.
///
/// A failed statement on it dooms the transaction, as one of Transaction::run() does, whatever the
/// work returns or throws: the store reads the error from the connection, and runs the work again
/// after a deadlock or a lock that was not free. Send no further statement after a failed one, or
/// the store sees only that one's error.
///
/// If the work ends the transaction all the same (MariaDB and MySQL also commit before a CREATE, an
/// ALTER, a DROP, a TRUNCATE), the store never reports it as committed: the transaction ends
/// `in_doubt`, its record becomes `unknown`, and its attempt is forgotten, because rows may be
/// there without the record's change.
st_mysql* mysql_connection(Transaction& transaction) noexcept;

/// An error of the SQL face.
struct [[nodiscard]] MysqlError {
  unsigned code = 0;  ///< docs/sql-face-mysql.md; 0: the connection is gone.
  std::string message;

  /// Another attempt has the record, or this one has ended: answer from the record.
  bool is_late() const noexcept { return code == 31001 || code == 31002; }
};

/// Ends the attempt with an answer, in the open transaction of the caller's own connection, whose
/// database is the store's. Blocks.
///
/// Only the caller's COMMIT makes the answer durable, together with the rows. After an error, also
/// is_late(), the transaction has been rolled back. Refused (31005) outside of a transaction;
/// nothing changes then. Waiters in this process are notified a moment later, as of changes by
/// other processes.
[[nodiscard]] std::expected<void, MysqlError> complete_on(st_mysql* connection, const RecordId& id,
                                                          const AttemptRef& attempt,
                                                          const StoredResponse& response,
                                                          std::string_view upstream_reference = {});
/// As complete_on(): records that a phase committed.
[[nodiscard]] std::expected<void, MysqlError> advance_on(st_mysql* connection, const RecordId& id,
                                                         const AttemptRef& attempt,
                                                         std::string_view recovery_point);

}  // namespace idem::inline v0_1
