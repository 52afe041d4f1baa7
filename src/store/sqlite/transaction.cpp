#include "store/sqlite/transaction.hpp"

#include "store/sqlite/connection.hpp"
#include "store/sqlite/internal_statements.hpp"
#include "store/verb_traits.hpp"

#include <idem/assert.hpp>
#include <idem/sqlite.hpp>

namespace idem::sqlite {
namespace {

/// A failure of the medium rolls the whole batch back, and with it other callers' steps.
void expect_transaction(sqlite3* db) {
  if (sqlite3_get_autocommit(db) != 0) fail_closed(db, "a transaction's work");
}

void execute(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail_closed(db, sql);
}

/// The store's turn between statements of the work.
class OurTurn {
 public:
  explicit OurTurn(ServiceSql& sql) : sql_(sql) { sql_.works(false); }
  ~OurTurn() { sql_.works(true); }
  OurTurn(const OurTurn&) = delete;
  OurTurn& operator=(const OurTurn&) = delete;

 private:
  ServiceSql& sql_;
};

class SqliteTransaction final : public Transaction {
 public:
  SqliteTransaction(ServiceSql& sql, const RecordId& id, std::string recovery_point)
      : sql_(sql), id_(id), recovery_point_(std::move(recovery_point)) {}

  SqlRows run(std::string_view sql, std::span<const SqlValue> values) override {
    if (failed()) return {};
    auto rows = sql_.ask(sql, values);
    if (rows) return std::move(*rows);
    if (!failed()) sqlstate_ = sql_.sqlstate();
    fail(std::move(rows.error()));
    return {};
  }
  const RecordId& record_id() const noexcept override { return id_; }
  const std::string& recovery_point() const noexcept override { return recovery_point_; }
  void fail(std::string why) override {
    if (failure_.empty()) failure_ = why.empty() ? "failed" : std::move(why);
  }
  const std::string& failure() const noexcept override { return failure_; }
  void* native() noexcept override { return connection(); }
  sqlite3* connection() noexcept { return sql_.lend(); }
  const std::string& sqlstate() const noexcept { return sqlstate_; }

 protected:
  SqlRows run_internal(InternalStatement which, std::span<const SqlValue> values) override {
    const OurTurn ours(sql_);
    return run(text_of(which), values);
  }

 private:
  ServiceSql& sql_;
  const RecordId& id_;
  std::string recovery_point_;
  std::string failure_;
  std::string sqlstate_;
};

constexpr const char* begin_work = "SAVEPOINT idem_work";
constexpr const char* undo_work = "ROLLBACK TO idem_work; RELEASE idem_work";
constexpr const char* refers_to_records =
    "a foreign key onto a table of the store: its rows come and go";
constexpr const char* keep_work = "RELEASE idem_work";

/// Deferred foreign keys are checked at the commit, and would fail the whole batch.
bool has_broken_references(sqlite3* db) {
  int broken = 0;
  int unused = 0;
  sqlite3_db_status(db, SQLITE_DBSTATUS_DEFERRED_FKS, &broken, &unused, 0);
  return broken != 0;
}

}  // namespace

void TransactionTask::run(ServiceSql& sql, const Step& step) {
  if (what_.reserve) {
    StoreCall reserve = *what_.reserve;
    auto result = step(reserve);
    if (!result) {
      end = {.how = TransactionEnd::How::unavailable,
             .why = std::move(result.error().detail),
             .damaged = result.error().record};
      return;
    }
    end.reserved = std::get<ReserveOutcome>(std::move(*result));
    const auto* execute = std::get_if<Execute>(&*end.reserved);
    if (execute == nullptr) {
      end.how = TransactionEnd::How::not_run;
      // The reserve may have ended an expired lease.
      changed_by_.emplace(std::move(reserve), StoreReply(*end.reserved));
      return;
    }
    granted = true;
    is_taken_up = execute->again && what_.reserve->lease_policy == LeasePolicy::resume;
    what_.id = execute->id;
    what_.attempt = execute->attempt;
  } else if (!find_attempt(step)) {
    end.how = TransactionEnd::How::superseded;
    return;
  }
  work(sql, step);
}

// Reads the record first: a stale owner's work does not run at all, and an owner that has completed
// its record does not write its rows twice.
bool TransactionTask::find_attempt(const Step& step) {
  StoreCall find = Find{what_.id};
  const auto found = step(find);
  if (!found) {
    end.why = found.error().detail;
    return false;
  }
  const auto& record = std::get<std::optional<Record>>(*found);
  if (!record) return false;
  end.reply = {Verdict::stale, record->state, record->expires_at};
  if (record->attempt != what_.attempt) return false;
  end.reply.verdict = Verdict::settled;
  return record->state != State::completed && record->state != State::expired;
}

// The file may come back, and then the transaction counts as done.
void TransactionTask::lose(const std::string& why) {
  const bool has_written = granted || end.how == TransactionEnd::How::committed;
  end = {.how = has_written ? TransactionEnd::How::in_doubt : TransactionEnd::How::unavailable,
         .why = why};
  changed_by_.reset();
}

void TransactionTask::work(ServiceSql& sql, const Step& step) {
  sqlite3* const db = sql.db();
  execute(db, begin_work);
  const auto* const grant = end.reserved ? std::get_if<Execute>(&*end.reserved) : nullptr;
  SqliteTransaction transaction(sql, what_.id,
                                grant != nullptr ? grant->recovery_point : std::string());
  std::optional<StoreCall> then;
  try {
    sql.works(true);
    then = what_.work(transaction, what_.id, what_.attempt);
  } catch (...) {
    thrown = std::current_exception();
    transaction.fail("the work threw");
  }
  // A failed call does not doom the transaction, but is why the work gave up.
  std::string given_up = then ? std::string() : sql.failure_of_lent();
  sql.works(false);
  expect_transaction(db);
  if (auto why = sql.take_back()) transaction.fail(std::move(*why));
  end.sqlstate = transaction.sqlstate();
  if (!transaction.failed() && then && has_broken_references(db)) {
    transaction.fail("FOREIGN KEY constraint failed");
    end.sqlstate = "23503";
  }
  if (!transaction.failed() && sql.refers_to_records()) transaction.fail(refers_to_records);
  if (!then || transaction.failed()) {
    execute(db, undo_work);
    return give_back(step, transaction.failed() ? transaction.failure() : std::move(given_up));
  }
  IDEM_ASSERT(traits_of(*then).may_end_transaction);
  auto result = step(*then);
  const auto* reply = result ? &std::get<OwnerReply>(*result) : nullptr;
  if (reply == nullptr || reply->verdict != Verdict::done) {
    // The step changed nothing: only the rows are undone.
    execute(db, undo_work);
    end.how = TransactionEnd::How::superseded;
    if (reply != nullptr) end.reply = *reply;
    if (reply == nullptr) end.why = result.error().detail;
    return;
  }
  execute(db, keep_work);
  end.how = TransactionEnd::How::committed;
  end.reply = *reply;
  changed_by_.emplace(std::move(*then), std::move(result));
}

// A reserve of this transaction cannot be undone, as other calls of the batch may have met it. The
// rollback proves that nothing ran.
void TransactionTask::give_back(const Step& step, std::string why) {
  end.how = TransactionEnd::How::rolled_back;
  end.why = std::move(why);
  // Earlier phases of resumed work may have committed: then the rollback proves nothing.
  if (!granted || is_taken_up) return;
  StoreCall release =
      Release{what_.id, what_.attempt, ReleaseBasis::proven, "rolled_back", Millis{}};
  auto result = step(release);
  changed_by_.emplace(std::move(release), std::move(result));
}

void StatementTask::run(ServiceSql& sql, const Step&) {
  sqlite3* const db = sql.db();
  execute(db, begin_work);
  sql.works(whose_ == Whose::service);
  result = sql.ask(sql_, values_);
  sql.works(false);
  expect_transaction(db);
  if (result && has_broken_references(db)) {
    result = std::unexpected("FOREIGN KEY constraint failed");
  }
  if (result && sql.refers_to_records()) result = std::unexpected(std::string(refers_to_records));
  execute(db, result ? keep_work : undo_work);
}

}  // namespace idem::sqlite

namespace idem::inline v0_1 {

sqlite3* sqlite_connection(Transaction& transaction) noexcept {
  auto* const ours = dynamic_cast<sqlite::SqliteTransaction*>(&transaction);
  return ours == nullptr ? nullptr : ours->connection();
}

}  // namespace idem::inline v0_1
