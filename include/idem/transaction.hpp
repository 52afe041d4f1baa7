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
/// Business rows, and what an owner does to its record, in one commit (protocol.md §16, §17).
namespace idem::inline v0_1 {

/// Bytes, where a database tells them from text.
struct SqlBytes {
  std::string bytes;
  bool operator==(const SqlBytes&) const = default;
};
/// What goes into a statement or comes out of it; NULL first.
///
/// The same on both databases: a boolean goes in as what the database has for it, and comes out as
/// the number 0 or 1; a numeric that is a whole number of 64 bits, such as a `sum(bigint)`, comes
/// out as a number. What a database has besides (a numeric with a fraction, dates) comes out as
/// text.
struct SqlValue : std::variant<std::monostate, std::int64_t, double, std::string, SqlBytes, bool> {
  using variant::variant;
  SqlValue() = default;                                            ///< NULL.
  SqlValue(std::string_view text) : variant(std::string(text)) {}  ///< A copy.
};
/// One row that a statement answers.
using SqlRow = std::vector<SqlValue>;
/// All of them, in their order.
using SqlRows = std::vector<SqlRow>;

enum class OwnStatement : std::uint8_t;

/// An open transaction of the database that the records lie in. Valid within the work that was
/// given it, on the thread that runs it.
///
/// It sticks to its first failure: a statement that fails dooms it, those after it are not run and
/// answer no rows, and it is rolled back whatever the work returns. So a handler need not look
/// after each statement; it may, with failed().
class Transaction {
 public:
  virtual ~Transaction() = default;

  /// Runs one statement, in which `$1`, `$2`... stand for `values`. The rows that it answers. A
  /// value that the statement does not name fails, as a name without a value does.
  virtual SqlRows run(std::string_view sql, std::span<const SqlValue> values) = 0;
  /// The same, with the values written down: `tx.run("DELETE FROM t WHERE id = $1", {id})`.
  SqlRows run(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return run(sql, std::span(values.begin(), values.size()));
  }

  /// Sends a message if and only if this commits; a relay delivers it then (<idem/relay.hpp>). Its
  /// id, 32 hexadecimal digits, by which the receiver tells a repeated delivery; empty where this
  /// had failed.
  std::string enqueue(const Message& message);

  /// The record that this commits with. The same for every attempt and every retry of a request, so
  /// that what is named after it is made once; and again when a key is used after its tombstone.
  virtual const RecordId& record_id() const noexcept = 0;
  /// Where this began with a reserve: the last phase that the record says has committed.
  virtual const std::string& recovery_point() const noexcept = 0;

  /// Dooms it: nothing of it is committed. The first reason stays.
  virtual void fail(std::string why) = 0;
  /// Why it will be rolled back, as the database said it; empty: nothing failed so far.
  virtual const std::string& failure() const noexcept = 0;
  /// It will be rolled back.
  bool failed() const noexcept { return !failure().empty(); }

  /// The connection below, for a library that wants its own type: <idem/sqlite.hpp>,
  /// <idem/postgres.hpp>. It is in a transaction, which must be neither ended nor nested.
  virtual void* native() noexcept = 0;

 protected:
  friend class InternalSql;
  /// Idem's own rows beside the records (src/store/internal_sql.hpp).
  virtual SqlRows run_own(OwnStatement which, std::span<const SqlValue> values) = 0;
};

/// Work that is committed together with what an owner does to its record, or not at all.
struct InTransaction {
  /// Asked first, in the same transaction: the work runs only where this is answered with Execute.
  /// None: under `attempt`, which was granted before.
  std::optional<Reserve> reserve{};
  RecordId id{};
  Attempt attempt{};
  /// Does its rows, then says what is to become of the record: a Complete, an Advance or a
  /// MarkUnknown of its own attempt. None: everything is rolled back. It may throw: rolled back,
  /// too. It must not ask the store for anything, nor wait for anybody outside. May run more than
  /// once: where the database ends the transaction in favour of another one (see
  /// Transactions::run()), it is rolled back and begun again.
  std::move_only_function<std::optional<StoreCall>(Transaction&, const RecordId&, const Attempt&)>
      work;
};

/// How such a transaction ended.
struct TransactionEnd {
  /// What is there, and what is known.
  enum class How : std::uint8_t {
    committed,    ///< Durable: rows, and `reply` to what was done to the record.
    rolled_back,  ///< Nothing of it is there: the work wanted it so, or failed (`why`).
    superseded,   ///< Nothing of it is there: the attempt is not the current one, or has ended.
    not_run,      ///< The reserve was answered otherwise (`reserved`); the work did not run.
    in_doubt,     ///< The connection was lost at the commit. Ask the store about the record: who is
                  ///< answered `settled` knows that it was done.
    unavailable,  ///< Nothing is there, as the database could not be reached (`why`).
  };
  How how = How::unavailable;
  std::optional<ReserveOutcome> reserved{};
  OwnerReply reply{};
  std::string why{};
  /// Of the statement that failed, as PostgreSQL and the SQL standard number it ("23505"); of
  /// SQLite's errors only where a constraint was broken. Empty: no statement failed.
  std::string sqlstate{};
  std::optional<RecordId> damaged{};  ///< Unavailable, because this record is damaged.
  /// In doubt in a way that the record does not know: the work had the connection itself, and may
  /// have committed rows alone. Nobody may run it again.
  bool rows_may_be_committed = false;
};

/// What a store whose records lie in an SQL database offers besides (Store::transactions()).
class Transactions {
 public:
  virtual ~Transactions() = default;

  /// Runs it and blocks until it has ended. Safe from any thread but one that is in such work.
  /// SQLite: the work runs on the store's thread, between the steps of a batch, and is committed
  /// with it; all other calls wait for it. PostgreSQL: on the caller's thread, on one of the
  /// store's connections for this, which it waits for.
  ///
  /// What PostgreSQL ended because of another transaction (a serialization failure, 40001; a
  /// deadlock, 40P01; a lock that was not free in time, 55P03) is rolled back and run again, up to
  /// limits::transaction_tries_max times; after that it ends as `rolled_back`, with the SQLSTATE.
  ///
  /// What the work threw comes out of here once everything was rolled back, unless one of its
  /// statements met such contention: then the work is run again. Where not everything may have
  /// been rolled back (`rows_may_be_committed`), the end says that instead.
  [[nodiscard]] virtual TransactionEnd run(InTransaction what) = 0;

  /// One statement in a transaction of its own, for schemas and look-ups. The error is the
  /// database's.
  [[nodiscard]] virtual std::expected<SqlRows, std::string> run(
      std::string_view sql, std::span<const SqlValue> values) = 0;
  /// The same, with the values written down.
  [[nodiscard]] std::expected<SqlRows, std::string> run(
      std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return run(sql, std::span(values.begin(), values.size()));
  }

 protected:
  friend class InternalSql;
  /// As Transaction::run_own, in a transaction of its own.
  virtual std::expected<SqlRows, std::string> run_own(OwnStatement which,
                                                      std::span<const SqlValue> values) = 0;
};

}  // namespace idem::inline v0_1
