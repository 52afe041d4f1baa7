#include "store/postgres/transactions.hpp"

#include "core/transitions/verb_check.hpp"
#include "store/named_values.hpp"
#include "store/postgres/failures.hpp"
#include "store/postgres/internal_statements.hpp"
#include "store/postgres/param_names.hpp"
#include "store/postgres/service_transaction.hpp"
#include "store/postgres/sql_values.hpp"
#include "store/sql_server/contention.hpp"

#include <idem/assert.hpp>
#include <idem/crash_point.hpp>
#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <thread>

namespace idem::postgres {
namespace {

using How = TransactionEnd::How;
using sql_server::Contention;
using sql_server::is_own_step;

/// Rolls back after the work; `why` is the reason.
TransactionEnd undo(Session& session, const PgTransaction& transaction, const Admission& admission,
                    How how, std::string why) {
  // Only work that had the connection itself can have ended the transaction.
  const bool is_over = session.is_idle();
  roll_back(session);
  if (transaction.was_lent()) {
    if (!session.is_open()) {
      auto lost = ended(How::in_doubt, std::move(why));
      lost.rows_may_be_committed = true;
      return lost;
    }
    if (is_over || !left_nothing(session, admission.number)) return give_up(session, admission);
  }
  return ended(how, std::move(why));
}

/// The verb and the COMMIT one after the other, so that each has its own result.
std::expected<TransactionEnd, Refused> step_and_commit(Session& session, const Admission& admission,
                                                       const StoreCall& step) {
  auto done = run_step(session, admission, step);
  if (!done) return std::unexpected(Refused{std::move(done.error())});
  if (done->is_another_transaction) return std::unexpected(Refused{{}, true});
  if (done->reply.verdict != Verdict::done) {
    Refused refused{ended(How::superseded, "the attempt is not the current one, or has ended")};
    refused.end.reply = done->reply;
    return std::unexpected(std::move(refused));
  }
  auto end = commit(session);
  end.reply = done->reply;
  return end;
}

/// Ends the transaction after the work, which returned `step`.
TransactionEnd conclude(Session& session, PgTransaction& transaction, const Admission& admission,
                        const std::optional<StoreCall>& step) {
  const auto undone = [&](How how, std::string why, std::string sqlstate = {}) {
    auto end = undo(session, transaction, admission, how, std::move(why));
    end.sqlstate = std::move(sqlstate);
    return end;
  };
  if (transaction.failed()) {
    return undone(transaction.is_worth_another_try() ? How::unavailable : How::rolled_back,
                  transaction.failure(), transaction.sqlstate());
  }
  if (!step) return undone(How::rolled_back, "the work asked for it");
  IDEM_ASSERT(is_own_step(*step, admission));
  if (auto bad = what_is_wrong(*step)) return undone(How::rolled_back, std::move(*bad));
  if (!session.is_in_transaction()) {
    return undone(How::rolled_back, "the work left its connection in an unexpected state");
  }
  const auto* const complete = std::get_if<Complete>(&*step);
  if (complete == nullptr && !transaction.make_record()) {
    return undone(How::unavailable, transaction.failure(), transaction.sqlstate());
  }
  if (admission.reserved) crash_point(CrashPoint::reserve_before_commit);
  crash_point(CrashPoint::settle_before_commit);
  auto settled = complete != nullptr && !transaction.was_lent()
                     ? complete_and_commit(session, admission, *complete)
                     : step_and_commit(session, admission, *step);
  if (!settled && settled.error().is_another_transaction) return give_up(session, admission);
  if (!settled) {
    auto end = undone(settled.error().end.how, std::move(settled.error().end.why),
                      std::move(settled.error().end.sqlstate));
    end.damaged = settled.error().end.damaged;
    if (!end.rows_may_be_committed) end.reply = settled.error().end.reply;
    return end;
  }
  if (settled->how == How::committed) {
    if (admission.reserved) crash_point(CrashPoint::reserve_after_commit);
    crash_point(CrashPoint::settle_after_commit);
  }
  return std::move(*settled);
}

/// Runs the work and ends the transaction. Rolls back and passes on an exception of the work,
/// unless a statement had met contention before: then that is the end.
TransactionEnd perform(Session& session, InTransaction& what, Admission& admission,
                       std::optional<StoreCall>& step) {
  const auto* const reserved =
      admission.reserved ? &std::get<ReserveOutcome>(*admission.reserved->result) : nullptr;
  const auto* const grant = reserved != nullptr ? std::get_if<Execute>(reserved) : nullptr;
  PgTransaction transaction(session, admission.id,
                            grant != nullptr ? grant->recovery_point : std::string(),
                            admission.to_make);
  try {
    step = what.work(transaction, admission.id, admission.attempt);
  } catch (...) {
    (void)transaction.failure();  // Reads it from a lent connection, before the rollback.
    auto end = undo(session, transaction, admission, How::rolled_back, "the work threw");
    if (end.rows_may_be_committed) return end;  // This matters more than the exception.
    if (!transaction.failed() || !is_contention(transaction.sqlstate())) throw;
    // It may have thrown because its statement returned no rows.
    return ended(How::unavailable, transaction.failure(), transaction.sqlstate());
  }
  return conclude(session, transaction, admission, step);
}

/// It left nothing, and the database ended it in favour of another transaction.
bool gave_way(const TransactionEnd& end) {
  const bool is_gone = end.how == How::unavailable || end.how == How::rolled_back;
  return is_gone && !end.rows_may_be_committed && is_contention(end.sqlstate);
}

}  // namespace

TransactionEnd PgTransactions::run(InTransaction what) {
  IDEM_ASSERT(what.work != nullptr);
  if (const auto why = why_not_to_wait(); !why.empty()) {
    return ended(How::unavailable, std::string(why));
  }
  if (what.reserve) {
    if (auto bad = what_is_wrong(StoreCall(*what.reserve))) {
      return ended(How::unavailable, std::move(*bad));
    }
  }
  auto since = MonotonicClock::now();
  Contention contention;
  for (;;) {
    auto tried = try_once(what);
    if (auto* const end = std::get_if<TransactionEnd>(&tried)) {
      if (!gave_way(*end)) return std::move(*end);
      if (!contention.is_worth_another_try()) {
        end->how = How::rolled_back;
        end->why = contention.at_the_last_try(end->why);
        return std::move(*end);
      }
      contention.pause();
      since = MonotonicClock::now();
      continue;
    }
    // Nothing ran yet, and nothing is there.
    auto& none = std::get<NotAdmitted>(tried);
    const Millis patience = none.is_held   ? Millis(limits::store_held_max)
                            : none.is_race ? Millis(limits::store_repeat_max)
                                           : Millis(0);
    if (MonotonicClock::now() - since >= patience) {
      if (none.reserved) committed_(StoreCall(*what.reserve), std::move(*none.reserved));
      return std::move(none.end);
    }
    std::this_thread::sleep_for(limits::store_repeat_interval);
  }
}

std::variant<TransactionEnd, NotAdmitted> PgTransactions::try_once(InTransaction& what) {
  auto session = sessions_.take();
  if (!session) return ended(How::unavailable, std::move(session.error()));
  auto admitted = admit(**session, what);
  if (!admitted) return std::move(admitted.error());
  std::optional<StoreCall> step;
  auto end = perform(**session, what, *admitted, step);
  auto& reserved = admitted->reserved;
  if (reserved) end.reserved = std::get<ReserveOutcome>(*reserved->result);
  if (end.how == How::committed) {
    if (reserved) committed_(StoreCall(*what.reserve), std::move(*reserved));
    committed_(*step, {end.reply});
  }
  return end;
}

std::expected<SqlRows, std::string> PgTransactions::run(std::string_view sql,
                                                        std::span<const SqlValue> values) {
  if (const auto command = transaction_command(sql); !command.empty()) {
    return std::unexpected(std::string(command) + ": this statement is a transaction of its own");
  }
  if (auto wrong = parameter_mismatch(params_named(sql), values.size())) {
    return std::unexpected(std::move(*wrong));
  }
  return ask_alone(sql, values);
}

std::expected<SqlRows, std::string> PgTransactions::ask_alone(std::string_view sql,
                                                              std::span<const SqlValue> values) {
  if (const auto why = why_not_to_wait(); !why.empty()) return std::unexpected(std::string(why));
  const auto params = SqlParams::of(values);
  if (!params) return std::unexpected(params.error());
  auto session = sessions_.take();
  if (!session) return std::unexpected(std::move(session.error()));
  // Settings and role of the session's former user must not hold here.
  if (const QueryResult clean = (*session)->run("RESET ALL; RESET ROLE", limits::store_reply_max);
      !clean) {
    return std::unexpected(failure_text(clean.error()));
  }
  if (what_does(sql) == Does::more) (*session)->invalidate_prepared();
  const QueryResult answer = (*session)->ask({sql, params->raw(), Session::Format::text},
                                             limits::transaction_statement_max);
  if (!answer) return std::unexpected(failure_text(answer.error()));
  return to_sql_rows(*answer);
}

std::expected<SqlRows, std::string> PgTransactions::run_internal(InternalStatement which,
                                                                 std::span<const SqlValue> values) {
  return ask_alone(text_of(which), values);
}

}  // namespace idem::postgres
