#pragma once

#include <idem/message.hpp>
#include <idem/store.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// @file
/// Business rows and an owner's step on its record in one commit (protocol.md §16, §17).
namespace idem::inline v0_1 {

/// Bytes, for databases that distinguish them from text.
struct SqlBytes {
  std::string bytes;
  bool operator==(const SqlBytes&) const = default;
};
/// A value that goes into a statement or comes out of it; NULL first.
///
/// The same on both databases: a boolean goes in as what the database has for it, and comes out as
/// the number 0 or 1; a numeric that is a whole number of 64 bits, such as a `sum(bigint)`, comes
/// out as a number. All other types (a numeric with a fraction, dates) come out as text.
struct SqlValue : std::variant<std::monostate, std::int64_t, double, std::string, SqlBytes, bool> {
  using variant::variant;
  SqlValue() = default;                                            ///< NULL.
  SqlValue(std::string_view text) : variant(std::string(text)) {}  ///< A copy.
};
/// One row that a statement returns.
using SqlRow = std::vector<SqlValue>;
/// All rows of a statement, in their order.
using SqlRows = std::vector<SqlRow>;

enum class InternalStatement : std::uint8_t;

/// An open transaction of the records' database. Valid within the work that received it, on the
/// thread that runs the work.
///
/// A failed statement dooms the transaction: later statements do not run and return no rows, and it
/// is rolled back whatever the work returns. So a handler need not check each statement; it may,
/// with failed().
class Transaction {
 public:
  virtual ~Transaction() = default;

  /// Runs one statement with `values` for its `$1`, `$2`... and returns its rows. A value that the
  /// statement does not name is a failure, and so is a name without a value.
  virtual SqlRows run(std::string_view sql, std::span<const SqlValue> values) = 0;
  /// The same, with the values written down: `tx.run("DELETE FROM t WHERE id = $1", {id})`.
  SqlRows run(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return run(sql, std::span(values.begin(), values.size()));
  }

  /// Sends a message if and only if this commits; a relay delivers it then (<idem/relay.hpp>).
  /// Returns its id, 32 hexadecimal digits, by which the receiver recognises a repeated delivery;
  /// empty if the transaction has failed.
  std::string enqueue(const Message& message);

  /// The record that this commits with: the same for every attempt and every retry of a request, so
  /// that an object named after it is made once. A key used after its tombstone has the same again.
  virtual const RecordId& record_id() const noexcept = 0;
  /// If this began with a reserve: the last committed phase of the record.
  virtual const std::string& recovery_point() const noexcept = 0;

  /// Dooms the transaction: nothing of it is committed. The first reason remains.
  virtual void fail(std::string why) = 0;
  /// Why it will be rolled back, in the database's words; empty: nothing failed so far.
  virtual const std::string& failure() const noexcept = 0;
  /// It will be rolled back.
  bool failed() const noexcept { return !failure().empty(); }

  /// The connection below, for a library that wants its own type: <idem/sqlite.hpp>,
  /// <idem/postgres.hpp>. It is in a transaction, which must be neither ended nor nested.
  virtual void* native() noexcept = 0;

 protected:
  friend class InternalSql;
  /// Idem's own rows beside the records (src/store/internal_sql.hpp).
  virtual SqlRows run_internal(InternalStatement which, std::span<const SqlValue> values) = 0;
};

/// Work that commits together with an owner's step on its record, or not at all.
struct InTransaction {
  /// Runs first, in the same transaction: the work runs only if the outcome is Execute. None: the
  /// work runs under `attempt`, which was granted before.
  std::optional<Reserve> reserve{};
  RecordId id{};
  Attempt attempt{};
  /// Writes its rows, then returns the step for the record: a Complete, an Advance or a MarkUnknown
  /// of its own attempt. None, or an exception: everything is rolled back. It must neither call the
  /// store nor wait for other services. It may run more than once: if the database ends the
  /// transaction in favour of another one (see Transactions::run()), it is rolled back and run
  /// again.
  std::move_only_function<std::optional<StoreCall>(Transaction&, const RecordId&, const Attempt&)>
      work;
};

/// How such a transaction ended.
struct [[nodiscard]] TransactionEnd {
  /// What was committed.
  enum class How : std::uint8_t {
    committed,    ///< Rows and record are durable; `reply` is the store's.
    rolled_back,  ///< Nothing was written: the work asked for that, or failed (`why`).
    superseded,   ///< Nothing was written: the attempt is not the current one, or has ended.
    not_run,      ///< The reserve had another outcome (`reserved`); the work did not run.
    in_doubt,     ///< The connection was lost at the commit. End the attempt by a verb: the reply
                  ///< `settled` proves the commit.
    unavailable,  ///< Nothing was written: the database could not be reached (`why`).
  };
  How how = How::unavailable;
  std::optional<ReserveOutcome> reserved{};
  OwnerReply reply{};
  std::string why{};
  /// The failed statement's SQLSTATE ("23505"); on SQLite only for a broken constraint. Empty
  /// otherwise.
  std::string sqlstate{};
  std::optional<RecordId> damaged{};  ///< `unavailable`, because this record is damaged.
  /// `in_doubt`, and the record cannot prove it: the work used native(), and may have committed
  /// rows alone. It must not run again.
  bool rows_may_be_committed = false;
};

/// Transactions of a store on an SQL database (Store::transactions()).
class Transactions {
 public:
  virtual ~Transactions() = default;

  /// Runs a transaction and blocks until it has ended. Safe from any thread but one that is in such
  /// work. SQLite: the work runs on the store's thread, between the steps of a batch, and commits
  /// with it; all other calls wait for it. PostgreSQL: the work runs on the caller's thread, after
  /// a wait for one of the store's connections for this.
  ///
  /// A transaction that PostgreSQL ends because of another one (a serialization failure, 40001; a
  /// deadlock, 40P01; a lock that was not free in time, 55P03) is rolled back and run again, up to
  /// limits::transaction_tries_max times; after that it ends as `rolled_back`, with the SQLSTATE.
  ///
  /// An exception of the work leaves run() after the rollback, unless one of its statements met
  /// such contention: then the work runs again. The exception need not name the failed statement:
  /// read failure() before it leaves the work, as the guards do (`transaction_failed`). If the rows
  /// may have been committed (`rows_may_be_committed`), run() returns that instead.
  [[nodiscard]] virtual TransactionEnd run(InTransaction what) = 0;

  /// Runs one statement in a transaction of its own, for schemas and look-ups. The error is the
  /// database's text.
  [[nodiscard]] virtual std::expected<SqlRows, std::string> run(
      std::string_view sql, std::span<const SqlValue> values) = 0;
  /// The same, with the values written down.
  [[nodiscard]] std::expected<SqlRows, std::string> run(
      std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return run(sql, std::span(values.begin(), values.size()));
  }

 protected:
  friend class InternalSql;
  /// As Transaction::run_internal, in a transaction of its own.
  virtual std::expected<SqlRows, std::string> run_internal(InternalStatement which,
                                                           std::span<const SqlValue> values) = 0;
};

}  // namespace idem::inline v0_1
