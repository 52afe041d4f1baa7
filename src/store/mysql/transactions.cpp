#include "store/mysql/transactions.hpp"

#include "core/transitions/verb_check.hpp"
#include "store/internal_sql.hpp"
#include "store/mysql/failures.hpp"
#include "store/mysql/internal_statements.hpp"
#include "store/mysql/service_sql.hpp"
#include "store/sql_server/contention.hpp"

#include <idem/assert.hpp>
#include <idem/crash_point.hpp>
#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <mysql.h>

#include <thread>

namespace idem::mysql {
namespace {

using How = TransactionEnd::How;
using sql_server::Contention;
using sql_server::is_own_step;
using Sessions = sql_server::Sessions<Session>;

/// A transaction's end, and whether the database gave another one the precedence.
struct Ended {
  TransactionEnd end;
  bool gave_way = false;
};

/// Rolls back after the work; `why` is the reason.
TransactionEnd undo(Session& session, const MysqlTransaction& transaction,
                    const Admission& admission, How how, std::string why) {
  roll_back(session);
  if (transaction.is_marked()) {
    if (!session.is_open()) {
      auto lost = ended(How::in_doubt, std::move(why));
      lost.rows_may_be_committed = true;
      return lost;
    }
    if (!left_nothing(session, admission)) return give_up(session, admission);
  }
  return ended(how, std::move(why));
}

/// An answer that the server never takes is left out: the work ran, and a retry learns it.
void keep_what_fits(StoreCall& step, const Session& session) {
  // Beside the body, which is written as hexadecimal digits: fields, reference and the COMMIT.
  constexpr std::size_t others = 256UL * 1024;
  auto* const complete = std::get_if<Complete>(&step);
  if (complete == nullptr) return;
  StoredResponse& response = complete->response;
  if (2 * response.body.size() + others <= session.packet_max()) return;
  response.body.clear();
  response.body_stored = false;
}

/// Ends the transaction after the work, which returned `step`.
Ended conclude(Session& session, MysqlTransaction& transaction, const Admission& admission,
               std::optional<StoreCall>& step) {
  const auto undone = [&](How how, std::string why, std::string sqlstate = {}) {
    auto end = undo(session, transaction, admission, how, std::move(why));
    end.sqlstate = std::move(sqlstate);
    return end;
  };
  if (transaction.failed()) {
    const bool gave_way = transaction.gave_way();
    return {undone(transaction.is_worth_another_try() ? How::unavailable : How::rolled_back,
                   transaction.failure(), transaction.sqlstate()),
            gave_way};
  }
  if (!step) return {undone(How::rolled_back, "the work asked for it")};
  IDEM_ASSERT(is_own_step(*step, admission));
  if (auto bad = what_is_wrong(*step)) return {undone(How::rolled_back, std::move(*bad))};
  if (!session.is_current()) {
    return {undone(How::unavailable, "the store has gone to another server meanwhile"), true};
  }
  keep_what_fits(*step, session);
  if (admission.reserved) crash_point(CrashPoint::reserve_before_commit);
  crash_point(CrashPoint::settle_before_commit);
  auto settled = settle_and_commit(session, admission, *step, transaction.is_marked());
  if (settled.is_another_transaction) {
    // No statement failed, so the work ended it, in a way that was not foreseen.
    if (!transaction.is_marked()) return {give_up(session, admission)};
    return {undone(How::rolled_back, "the work left its connection in an unexpected state")};
  }
  if (settled.end.how != How::committed) {
    if (settled.end.how == How::in_doubt) return {std::move(settled.end)};
    const bool gave_way = settled.end.how == How::unavailable;
    auto end = undone(settled.end.how, std::move(settled.end.why), std::move(settled.end.sqlstate));
    if (settled.leads_elsewhere) session.close();
    end.damaged = settled.end.damaged;
    if (!end.rows_may_be_committed) end.reply = settled.end.reply;
    return {std::move(end), gave_way};
  }
  if (admission.reserved) crash_point(CrashPoint::reserve_after_commit);
  crash_point(CrashPoint::settle_after_commit);
  return {std::move(settled.end)};
}

/// Runs the work and ends the transaction. Rolls back and passes on an exception of the work,
/// unless a statement had met contention before: then that is the end.
Ended perform(Session& session, InTransaction& what, const Admission& admission,
              const std::string& recovery_point, std::optional<StoreCall>& step) {
  MysqlTransaction transaction(session, admission.id, admission.attempt, recovery_point);
  try {
    step = what.work(transaction, admission.id, admission.attempt);
  } catch (...) {
    (void)transaction.failure();  // Reads it from a lent connection, before the rollback.
    auto end = undo(session, transaction, admission, How::rolled_back, "the work threw");
    if (end.rows_may_be_committed) return {std::move(end)};  // This matters more.
    if (!transaction.failed() || !transaction.gave_way()) throw;
    // It may have thrown because its statement returned no rows.
    return {ended(How::unavailable, transaction.failure(), transaction.sqlstate()), true};
  }
  return conclude(session, transaction, admission, step);
}

/// One call of run(): the tries of one work.
class Run {
 public:
  Run(Sessions& sessions, TransactionsOf& store, InTransaction& what)
      : sessions_(sessions), store_(store), what_(what) {}

  TransactionEnd to_its_end() {
    auto since = MonotonicClock::now();
    for (;;) {
      auto tried = try_once();
      if (auto* const done = std::get_if<Ended>(&tried)) {
        const bool left_nothing =
            done->end.how == How::unavailable || done->end.how == How::rolled_back;
        if (!done->gave_way || !left_nothing || done->end.rows_may_be_committed) {
          return std::move(done->end);
        }
        if (!contention_.is_worth_another_try()) {
          done->end.how = How::rolled_back;
          done->end.why = contention_.at_the_last_try(done->end.why);
          return std::move(done->end);
        }
        contention_.pause();
        since = MonotonicClock::now();
        continue;
      }
      // Nothing ran yet, and nothing is there.
      auto& none = std::get<NotAdmitted>(tried);
      const Millis patience = none.is_held   ? Millis(limits::store_held_max)
                              : none.is_race ? Millis(limits::store_repeat_max)
                                             : Millis(0);
      if (MonotonicClock::now() - since < patience) {
        std::this_thread::sleep_for(limits::store_repeat_interval);
        continue;
      }
      if (!none.is_met) return std::move(none.end);
      if (auto end = ask_the_store()) return std::move(*end);
      since = MonotonicClock::now();
    }
  }

  /// After an end that left nothing, or an exception: an attempt that the store granted is
  /// released.
  void release() {
    if (!granted_) return;
    (void)store_.ask(StoreCall(Release{.id = granted_->id,
                                       .attempt = granted_->attempt,
                                       .basis = ReleaseBasis::proven,
                                       .error_code = "rolled_back",
                                       .retry_in = {}}));
    granted_.reset();
  }

 private:
  bool is_plain() const { return what_.reserve->also.empty() && !what_.reserve->quota; }

  std::expected<Admission, NotAdmitted> admit(Session& session) const {
    if (granted_) {
      auto admission = admit_attempt(session, granted_->id, granted_->attempt);
      return admission;
    }
    if (!what_.reserve) return admit_attempt(session, what_.id, what_.attempt);
    if (is_plain()) return admit_reserve(session, *what_.reserve);
    NotAdmitted none{ended(How::not_run, {})};
    none.is_met = true;
    return std::unexpected(std::move(none));
  }

  std::variant<Ended, NotAdmitted> try_once() {
    auto session = sessions_.take();
    if (!session) return Ended{ended(How::unavailable, std::move(session.error()))};
    auto admitted = admit(**session);
    if (!admitted) return std::move(admitted.error());
    const auto& reserved = admitted->reserved;
    const std::string point = reserved   ? std::get<Execute>(*reserved).recovery_point
                              : granted_ ? granted_->recovery_point
                                         : std::string();
    std::optional<StoreCall> step;
    auto done = perform(**session, what_, *admitted, point, step);
    if (reserved) done.end.reserved = reserved;
    if (granted_) done.end.reserved = ReserveOutcome(*granted_);
    if (done.end.how == How::committed) {
      // At once: a server that lacks it must not come into use.
      store_.in_use->note(admitted->id, admitted->attempt.fence);
      if (reserved) store_.committed(StoreCall(*what_.reserve), StoreReply(*reserved));
      store_.committed(*step, StoreReply(done.end.reply));
    }
    return done;
  }

  /// Reserves by the store's own steps. None: it granted the attempt.
  std::optional<TransactionEnd> ask_the_store() {
    Reserve reserve = *what_.reserve;
    // No byte leaves this transaction, so an end without a commit is proof that nothing ran.
    reserve.dispatched = false;
    StoreResult result = store_.ask(StoreCall(std::move(reserve)));
    if (!result) {
      auto end = ended(How::unavailable, result.error().detail);
      if (result.error().code == StoreError::Code::damaged) end.damaged = result.error().record;
      return end;
    }
    auto& outcome = std::get<ReserveOutcome>(*result);
    if (const auto* execute = std::get_if<Execute>(&outcome)) {
      granted_ = *execute;
      return std::nullopt;
    }
    auto end = ended(How::not_run, {});
    end.reserved = std::move(outcome);
    return end;
  }

  Sessions& sessions_;
  TransactionsOf& store_;
  InTransaction& what_;
  Contention contention_;
  std::optional<Execute> granted_{};  ///< By the store, and committed.
};

class MysqlTransactions final : public Transactions {
 public:
  explicit MysqlTransactions(TransactionsOf store)
      : store_(std::move(store)), sessions_(store_.url, store_.store_id, store_.in_use) {}

  using Transactions::run;

  TransactionEnd run(InTransaction what) override {
    IDEM_ASSERT(what.work != nullptr);
    if (const auto why = why_not_to_wait(); !why.empty()) {
      return ended(How::unavailable, std::string(why));
    }
    if (what.reserve) {
      if (auto bad = what_is_wrong(StoreCall(*what.reserve))) {
        return ended(How::unavailable, std::move(*bad));
      }
    }
    Run one(sessions_, store_, what);
    try {
      auto end = one.to_its_end();
      const bool left_nothing = end.how == How::rolled_back || end.how == How::unavailable;
      if (left_nothing && !end.rows_may_be_committed) one.release();
      return end;
    } catch (...) {
      one.release();
      throw;
    }
  }

  std::expected<SqlRows, std::string> run(std::string_view sql,
                                          std::span<const SqlValue> values) override {
    if (const auto command = transaction_end(sql); !command.empty()) {
      return std::unexpected(command + ": this statement is a transaction of its own");
    }
    if (has_several_statements(sql) && transaction_command(sql) != "CREATE") {
      return std::unexpected("more than one statement");
    }
    const auto text = with_values(sql, values);
    if (!text) return std::unexpected(text.error());
    return alone([&](Session& session) -> std::expected<SqlRows, SessionFailure> {
      auto answers = session.ask(settings_sql(session.database(), false) + ";" + *text,
                                 limits::transaction_statement_max);
      if (!answers) return std::unexpected(std::move(answers.error()));
      return answers->back().rows ? to_sql_rows(answers->back().rows.get()) : SqlRows();
    });
  }

 protected:
  std::expected<SqlRows, std::string> run_internal(InternalStatement which,
                                                   std::span<const SqlValue> values) override {
    return alone([&](Session& session) -> std::expected<SqlRows, SessionFailure> {
      auto begun =
          session.ask(settings_sql(session.database(), true).append(";").append(read_only_sql),
                      limits::store_reply_max);
      if (!begun) return std::unexpected(std::move(begun.error()));
      if (is_read_only(*begun)) {
        session.close();
        return std::unexpected(SessionFailure{0, {}, std::string(no_writes), {}});
      }
      auto rows = ask_internal(session, which, values);
      if (!rows) {
        roll_back(session);
        return rows;
      }
      auto committed = session.ask("COMMIT", limits::store_reply_max);
      if (!committed) return std::unexpected(std::move(committed.error()));
      return rows;
    });
  }

 private:
  template <class Asking>
  std::expected<SqlRows, std::string> alone(const Asking& asking) {
    if (const auto why = why_not_to_wait(); !why.empty()) {
      return std::unexpected(std::string(why));
    }
    Contention contention;
    for (;;) {
      auto session = sessions_.take();
      if (!session) return std::unexpected(std::move(session.error()));
      auto rows = asking(**session);
      if (rows) return std::move(*rows);
      if (is_other_server(Failure{rows.error().code})) (**session).close();
      if (!is_contention(rows.error().code) || !contention.is_worth_another_try()) {
        return std::unexpected(failure_text(rows.error()));
      }
      contention.pause();
    }
  }

  TransactionsOf store_;
  Sessions sessions_;
};

}  // namespace

std::unique_ptr<Transactions> make_mysql_transactions(TransactionsOf store) {
  return std::make_unique<MysqlTransactions>(std::move(store));
}

}  // namespace idem::mysql
