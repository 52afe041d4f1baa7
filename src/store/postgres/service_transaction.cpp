#include "store/postgres/service_transaction.hpp"

#include "store/named_values.hpp"
#include "store/postgres/failures.hpp"
#include "store/postgres/internal_statements.hpp"
#include "store/postgres/libpq.hpp"
#include "store/postgres/one_record.hpp"
#include "store/postgres/param_names.hpp"
#include "store/postgres/sql_values.hpp"

#include <idem/limits.hpp>
#include <idem/postgres.hpp>

#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>

namespace idem::postgres {
namespace {

using How = TransactionEnd::How;

// An earlier handler's settings, or behind a pooler any client's, must not hold in this
// transaction. BEGIN names the isolation level, because the server reads the default before it is
// reset. The record's lock outlives a vanished caller by transaction_idle_max at most.
const std::array<std::string, 5> begin_sql{
    "RESET ALL", "RESET ROLE", "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE",
    fmt::format("SET LOCAL lock_timeout = {}", Millis(limits::transaction_lock_max).count()),
    fmt::format("SET LOCAL idle_in_transaction_session_timeout = {}",
                Millis(limits::transaction_idle_max).count())};

constexpr std::string_view commit_sql = "COMMIT";

/// Begins and sends `first`, in one round trip. `left_over`: prepared statements to deallocate.
QueryResult begin_with(Session& session, const Session::Asked& first,
                       std::vector<std::string> left_over = {}) {
  std::vector<Session::Asked> asked;
  for (std::string& name : left_over) {
    name.insert(0, "DEALLOCATE ");
    asked.push_back({name});
  }
  for (const std::string& sql : begin_sql) {
    asked.push_back({sql, {}, Session::Format::binary, Kept::ours});
  }
  asked.push_back(first);
  return std::move(session.ask_all(asked, limits::store_reply_max).back());
}

// Reads the number only for a new attempt: a duplicate must not use up a transaction number.
std::string with_number(std::string_view reserve_sql) {
  return fmt::format(
      "SELECT o.*, CASE WHEN o.outcome OPERATOR(pg_catalog.=) 'execute'"
      " THEN pg_catalog.pg_current_xact_id()::pg_catalog.text END FROM ({}) o",
      reserve_sql);
}

/// The end after an owner's verb that failed.
TransactionEnd end_of_step(Session& session, const RecordId& id, const Failure& failure) {
  if (is_other_server(failure) || is_forgotten(failure) || may_be_another_store(failure)) {
    session.close();
  }
  const bool is_passing = failure.sqlstate.empty() || is_race(failure) ||
                          is_other_server(failure) || is_forgotten(failure);
  auto end = ended(is_passing ? How::unavailable : How::rolled_back, failure_text(failure),
                   failure.sqlstate);
  if (is_damage(failure)) end.damaged = id;
  return end;
}

TransactionEnd end_of_commit(const QueryResult& committed) {
  if (!committed) {
    // An error on a session that stays in order means that the server rolled back.
    const bool is_lost = committed.error().sqlstate.empty();
    return ended(is_lost ? How::in_doubt : How::rolled_back, failure_text(committed.error()),
                 committed.error().sqlstate);
  }
  if (committed->command() != "COMMIT") {
    return ended(How::rolled_back, "a statement of the work had failed");
  }
  return ended(How::committed, {});
}

std::string_view last_cell(const Rows& rows) { return rows.cell(0, rows.columns() - 1); }

NotAdmitted not_admitted(Session& session, const RecordId& id, const Failure& failure) {
  if (is_other_server(failure) || is_forgotten(failure) || may_be_another_store(failure)) {
    session.close();
  }
  NotAdmitted none{ended(How::unavailable, failure_text(failure))};
  if (is_damage(failure)) none.end.damaged = id;
  // A lost session left nothing, because no COMMIT was sent; another one may succeed.
  none.is_race = failure.sqlstate.empty() || is_race(failure) || is_other_server(failure) ||
                 is_forgotten(failure);
  return none;
}

std::expected<Admission, NotAdmitted> admit_attempt(Session& session, const InTransaction& what) {
  const OneStep step = ask_admit(what.id, what.attempt);
  const QueryResult answer = begin_with(session, step.asked(), session.trust());
  if (!answer) return std::unexpected(not_admitted(session, what.id, answer.error()));
  const auto superseded = [&](OwnerReply reply) {
    NotAdmitted none{ended(How::superseded, "the attempt is not the current one, or has ended")};
    none.end.reply = reply;
    return std::unexpected(std::move(none));
  };
  auto admitted = results_of_admit(*answer);
  if (!admitted) return superseded({});
  const State state = admitted->state;
  if (!admitted->is_own) return superseded({Verdict::stale, state, {}});
  // The other states came from this attempt, whose late answer counts (§3).
  if (state == State::completed || state == State::expired) {
    return superseded({Verdict::settled, state, {}});
  }
  return Admission{what.id, what.attempt, std::move(admitted->number)};
}

/// Reserves a key that is not new, in the transaction that was begun for it.
std::expected<Admission, NotAdmitted> admit_met(Session& session, const Reserve& reserve) {
  const StoreCall call(reserve);
  const Statement statement = ask_one(call);
  const QueryResult answer =
      session.ask(with_number(statement.sql), statement.params, limits::store_reply_max);
  if (!answer) return std::unexpected(not_admitted(session, reserve.id, answer.error()));
  CallResult result = results_of_one(call, *answer);
  if (!result.result) {
    const StoreError& why = result.result.error();
    NotAdmitted none{ended(How::unavailable, why.detail)};
    if (why.code == StoreError::Code::damaged) none.end.damaged = why.record.value_or(reserve.id);
    return std::unexpected(std::move(none));
  }
  const auto& outcome = std::get<ReserveOutcome>(*result.result);
  if (const auto* execute = std::get_if<Execute>(&outcome)) {
    const RecordId id = execute->id;
    const Attempt attempt = execute->attempt;
    return Admission{id, attempt, std::string(last_cell(*answer)), std::move(result)};
  }
  NotAdmitted none{ended(How::not_run, {})};
  none.end.reserved = outcome;
  none.is_held = result.held;
  if (result.held) return std::unexpected(std::move(none));
  // It may have ended a lease, which counts once it is committed (§5).
  if (TransactionEnd end = commit(session); end.how != How::committed) {
    return std::unexpected(NotAdmitted{ended(How::unavailable, std::move(end.why))});
  }
  none.reserved = std::move(result);
  return std::unexpected(std::move(none));
}

std::expected<Admission, NotAdmitted> admit_reserve(Session& session, const Reserve& reserve) {
  // A key with other names needs a lookup of each.
  const bool may_be_new = reserve.also.empty() && !reserve.quota;
  const OneStep step = ask_admit_new(reserve);
  const QueryResult answer =
      begin_with(session, may_be_new ? step.asked() : Session::Asked{"SELECT"}, session.trust());
  if (!answer) return std::unexpected(not_admitted(session, reserve.id, answer.error()));
  auto made = may_be_new ? results_of_admit_new(reserve, *answer) : std::nullopt;
  if (!made) return admit_met(session, reserve);
  const Attempt attempt{made->fence, reserve.token};
  CallResult result{ReserveOutcome(Execute{reserve.id, attempt, {}, false})};
  return Admission{reserve.id, attempt, made->number, std::move(result), std::move(made)};
}

}  // namespace

TransactionEnd ended(How how, std::string why, std::string sqlstate) {
  TransactionEnd end;
  end.how = how;
  end.why = std::move(why);
  end.sqlstate = std::move(sqlstate);
  return end;
}

SqlRows PgTransaction::run(std::string_view sql, std::span<const SqlValue> values) {
  if (failed()) return {};
  if (const auto command = transaction_command(sql); !command.empty()) {
    fail(fmt::format("{} is not allowed: the work is in a transaction of its store", command));
    return {};
  }
  if (!may_ask()) return {};
  if (auto wrong = parameter_mismatch(params_named(sql), values.size())) {
    return fail(std::move(*wrong)), SqlRows();
  }
  const auto params = SqlParams::of(values);
  if (!params) return fail(params.error()), SqlRows();
  if (may_ask_for_records(sql) && !make_record()) return {};
  const Does does = what_does(sql);
  if (does == Does::more) session_.invalidate_prepared();
  const Session::Asked asked{sql, params->raw(), Session::Format::text,
                             does == Does::rows ? Kept::service : Kept::never};
  const QueryResult answer = session_.ask(asked, limits::transaction_statement_max);
  // SELECT INTO makes a table.
  if (answer && answer->columns() == 0 && answer->command().starts_with("SELECT")) {
    session_.invalidate_prepared();
  }
  if (answer) return to_sql_rows(*answer);
  fail_of(answer.error());
  return {};
}

bool PgTransaction::may_ask() {
  if (failed()) return false;
  if (session_.is_in_transaction()) return true;
  fail("the transaction is over, or a statement of it failed");
  return false;
}

// These statements look for no record and leave nothing in the session.
SqlRows PgTransaction::run_internal(InternalStatement which, std::span<const SqlValue> values) {
  if (!may_ask()) return {};
  const auto params = SqlParams::of(values);
  if (!params) return fail(params.error()), SqlRows();
  const Session::Asked asked{text_of(which), params->raw(), Session::Format::text, Kept::ours};
  const QueryResult answer = session_.ask(asked, limits::transaction_statement_max);
  if (answer) return to_sql_rows(*answer);
  fail_of(answer.error());
  return {};
}

// Errors such as 23505 are about business rows here, and would come again.
PgTransaction::Failed PgTransaction::failed_by(const Failure& failure) {
  const auto& state = failure.sqlstate;
  return {failure_text(failure), state,
          state.empty() || state.starts_with("40") || state == "55P03" || is_other_server(failure)};
}

void PgTransaction::fail_of(const Failure& failure) {
  Failed now = failed_by(failure);
  if (failed_.why.empty()) {
    failed_ = std::move(now);
  } else {
    failed_.is_worth_another_try = now.is_worth_another_try;
  }
}

// The work has read the results of its own statements; the connection still has the last error.
const std::string& PgTransaction::failure() const noexcept {
  if (was_lent_ && failed_.why.empty() && session_.is_in_failed_transaction()) {
    const Failure last = last_failure_of(session_.native());
    failed_ = failed_by(last);
    // Without its SQLSTATE, nobody knows whether the work caused it.
    if (last.sqlstate.empty()) failed_.is_worth_another_try = false;
    if (failed_.why.empty()) failed_.why = "a statement of the work failed";
  }
  return failed_.why;
}

// Also after the work has failed: with the connection it could commit nevertheless.
bool PgTransaction::make_record() {
  if (!to_make_ || !session_.is_in_transaction()) return !failed();
  const OneStep step = ask_make_new(*to_make_);
  const QueryResult answer = session_.ask(step.asked(), limits::store_reply_max);
  if (!answer) {
    fail_of(answer.error());
    failed_.is_worth_another_try |= is_race(answer.error());
    return false;
  }
  to_make_.reset();
  return !failed();
}

pg_conn* PgTransaction::connection() noexcept {
  was_lent_ = true;
  // If the work commits on it, the rows must not be without a record.
  (void)make_record();
  session_.invalidate_prepared();
  if (session_.is_open()) PQsetErrorVerbosity(session_.native(), PQERRORS_VERBOSE);
  return session_.native();
}

PgTransaction::~PgTransaction() {
  if (was_lent_ && session_.is_open()) PQsetErrorVerbosity(session_.native(), PQERRORS_DEFAULT);
}

void PgTransaction::fail(std::string why) {
  if (failed()) return;
  failed_.why = why.empty() ? "the work did not say why" : std::move(why);
}

std::expected<Admission, NotAdmitted> admit(Session& session, const InTransaction& what) {
  auto admitted =
      what.reserve ? admit_reserve(session, *what.reserve) : admit_attempt(session, what);
  if (!admitted) roll_back(session);
  return admitted;
}

std::expected<Step, TransactionEnd> run_step(Session& session, const Admission& admission,
                                             const StoreCall& call) {
  const StoreCall* const calls[] = {&call};
  const Statement statement = ask_owners(calls);
  const QueryResult answer =
      session.ask(fmt::format("SELECT o.*, pg_catalog.pg_current_xact_id()::pg_catalog.text"
                              " FROM ({}) o",
                              statement.sql),
                  statement.params, limits::store_reply_max);
  if (!answer) return std::unexpected(end_of_step(session, admission.id, answer.error()));
  auto result = std::move(results_of_owners(1, *answer).front());
  if (!result) return std::unexpected(ended(How::unavailable, "the reply was incomplete"));
  if (!result->result) {
    StoreError& why = result->result.error();
    auto end = ended(How::unavailable, std::move(why.detail));
    if (why.code == StoreError::Code::damaged) end.damaged = admission.id;
    return std::unexpected(std::move(end));
  }
  return Step{std::get<OwnerReply>(*result->result), last_cell(*answer) != admission.number};
}

std::expected<TransactionEnd, Refused> complete_and_commit(Session& session,
                                                           const Admission& admission,
                                                           const Complete& verb) {
  const OneStep step = admission.to_make ? ask_complete_new(*admission.to_make, verb)
                                         : ask_complete(admission.number, verb);
  const Session::Asked both[] = {step.asked(),
                                 {commit_sql, {}, Session::Format::binary, Kept::ours}};
  auto answers = session.ask_all(both, limits::store_reply_max);
  // The COMMIT had been sent, whichever reply came last.
  const bool is_lost = !answers.back() && answers.back().error().sqlstate.empty();
  if (answers.front() && answers.size() == 2) {
    auto end = end_of_commit(answers.back());
    end.reply = results_of_complete(*answers.front());
    return end;
  }
  const Failure& failure = answers.back().error();
  if (is_lost) return ended(How::in_doubt, failure_text(failure));
  Refused refused{end_of_step(session, admission.id, failure)};
  refused.is_another_transaction = is_another_transaction(failure);
  if (auto reply = results_of_refusal(failure)) {
    refused.end = ended(How::superseded, "the attempt is not the current one, or has ended");
    refused.end.reply = *reply;
  }
  return std::unexpected(std::move(refused));
}

TransactionEnd commit(Session& session) {
  return end_of_commit(session.run(commit_sql, limits::store_reply_max));
}

void roll_back(Session& session) {
  if (!session.is_open() || session.is_idle()) return;
  const QueryResult rolled = session.run("ROLLBACK", limits::store_reply_max);
  if (!rolled || !session.is_idle()) session.close();
}

bool left_nothing(Session& session, const std::string& number) {
  if (!session.is_open()) return false;
  Params params;
  params.text(number);
  const QueryResult answer = session.ask(
      "SELECT pg_catalog.pg_xact_status($1::pg_catalog.xid8)"
      " OPERATOR(pg_catalog.=) 'aborted'",
      params, limits::store_reply_max);
  return answer && answer->size() == 1 && to_boolean(answer->cell(0, 0));
}

TransactionEnd give_up(Session& session, const Admission& admission) {
  roll_back(session);
  auto end = ended(How::in_doubt,
                   "the work ended its transaction itself: its rows may be committed, and its"
                   " record is unknown");
  end.rows_may_be_committed = true;
  if (!session.is_open()) return end;
  const StoreCall call(
      MarkUnknown{admission.id, admission.attempt, "work_ended_transaction", {}, {}});
  const StoreCall* const calls[] = {&call};
  const Statement marking = ask_owners(calls);
  Params params;
  params.uuid(admission.id.bytes).uuid(admission.attempt.token.bytes);
  const bool is_marked =
      begin_with(session, {marking.sql, marking.params.raw()}).has_value() &&
      session.ask("SELECT idem.forget_attempt($1, $2)", params, limits::store_reply_max)
          .has_value();
  if (is_marked) (void)commit(session);
  roll_back(session);
  return end;
}

}  // namespace idem::postgres

namespace idem::inline v0_1 {

pg_conn* postgres_connection(Transaction& transaction) noexcept {
  auto* const ours = dynamic_cast<postgres::PgTransaction*>(&transaction);
  return ours != nullptr ? ours->connection() : nullptr;
}

}  // namespace idem::inline v0_1
