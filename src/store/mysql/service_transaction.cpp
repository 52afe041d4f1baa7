#include "store/mysql/service_transaction.hpp"

#include "core/record/stored_fence.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/mysql/failures.hpp"
#include "store/mysql/internal_statements.hpp"
#include "store/mysql/service_sql.hpp"
#include "store/mysql/step_sql.hpp"

#include <idem/limits.hpp>
#include <idem/mysql.hpp>

#include <fmt/format.h>
#include <mysql.h>

#include <algorithm>

namespace idem::mysql {
namespace {

using How = TransactionEnd::How;

/// A savepoint ends with its transaction, so it proves that this is the one that was begun.
constexpr std::string_view same_transaction_sql = "RELEASE SAVEPOINT idem_begun;";

/// The service's session stays in this mode until the end: with autocommit, the statements behind a
/// deadlock, which ends the transaction, would commit one by one.
std::string begin_sql(const Session& session) {
  return fmt::format("{};{};START TRANSACTION;SAVEPOINT idem_begun;",
                     settings_sql(session.database(), true), read_only_sql);
}

SqlRows last_rows(const std::vector<StatementResult>& answers) {
  for (auto answer = answers.rbegin(); answer != answers.rend(); ++answer) {
    if (answer->rows) return to_sql_rows(answer->rows.get());
  }
  return {};
}

std::int64_t number_in(const SqlValue& value) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  return number != nullptr ? *number : 0;
}

std::string text_in(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* const bytes = std::get_if<SqlBytes>(&value);
  return bytes != nullptr ? bytes->bytes : std::string();
}

/// The row of idem_step_row(). None: it is not there.
std::optional<OwnerReply> reply_in(const std::vector<StatementResult>& answers) {
  const SqlRows rows = last_rows(answers);
  if (rows.size() != 1 || rows.front().size() != 4) return std::nullopt;
  const SqlRow& row = rows.front();
  const std::string verdict = text_in(row[0]);
  OwnerReply reply;
  if (verdict == "damaged") return std::nullopt;
  reply.verdict = verdict == "done"      ? Verdict::done
                  : verdict == "settled" ? Verdict::settled
                                         : Verdict::stale;
  if (const auto state = number_in(row[1]); state != 0) reply.state = static_cast<State>(state);
  if (!std::holds_alternative<std::monostate>(row[2])) {
    reply.expires_at = StoreTime(Millis(number_in(row[2])));
  }
  reply.is_contradicted = number_in(row[3]) != 0;
  return reply;
}

bool is_damaged(const SessionFailure& failure) { return failure.code == 31008; }

TransactionEnd superseded(const OwnerReply& reply) {
  auto end = ended(How::superseded, "the attempt is not the current one, or has ended");
  end.reply = reply;
  return end;
}

bool is_of_a_replica(const SessionFailure& failure) {
  return !failure.is_lost() && is_other_server(Failure{failure.code});
}

/// Another server, or another store, has to take the place of the session.
bool leads_elsewhere(const SessionFailure& failure) {
  return is_of_a_replica(failure) ||
         (!failure.is_lost() && may_be_another_store(Failure{failure.code}));
}

NotAdmitted not_admitted(Session& session, const RecordId& id, const SessionFailure& failure) {
  NotAdmitted none{ended(How::unavailable, failure_text(failure))};
  if (is_damaged(failure)) none.end.damaged = id;
  // A lost session left nothing, because no COMMIT was sent; another one may succeed.
  none.is_race = failure.is_lost() || is_contention(failure.code);
  none.is_race |= is_of_a_replica(failure);
  if (leads_elsewhere(failure)) session.close();
  roll_back(session);
  return none;
}

NotAdmitted not_admitted_by_replica(Session& session) {
  session.close();
  NotAdmitted none{ended(How::unavailable, std::string(no_writes))};
  none.is_race = true;
  return none;
}

/// `text` with the numbers of `rows`' last column for each `{}`. Empty: there are none.
std::string then_of(std::string_view text, SqlRows& rows) {
  std::string numbers;
  for (SqlRow& row : rows) {
    if (!std::holds_alternative<std::monostate>(row.back())) {
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", number_in(row.back()));
    }
    row.pop_back();
  }
  if (numbers.empty()) return {};
  std::string made;
  for (auto at = text.find("{}"); at != text.npos; at = text.find("{}")) {
    made.append(text.substr(0, at)).append(numbers);
    text.remove_prefix(at + 2);
  }
  return made.append(text);
}

/// A statement may name fewer values than it was given: the other part of it has them.
std::string with_given(std::string_view sql, std::span<const SqlValue> values) {
  std::string text;
  for (std::size_t at = 0; at < sql.size(); ++at) {
    const bool is_number =
        sql[at] == '$' && at + 1 < sql.size() && sql[at + 1] >= '1' && sql[at + 1] <= '9';
    if (is_number) {
      const auto number = static_cast<std::size_t>(sql[++at] - '0');
      text += number <= values.size() ? literal_of(values[number - 1]).value_or("NULL") : "NULL";
    } else {
      text += sql[at];
    }
  }
  return text;
}

}  // namespace

TransactionEnd ended(How how, std::string why, std::string sqlstate) {
  TransactionEnd end;
  end.how = how;
  end.why = std::move(why);
  end.sqlstate = std::move(sqlstate);
  return end;
}

bool is_read_only(const std::vector<StatementResult>& answers) {
  const auto first =
      std::ranges::find_if(answers, [](const StatementResult& one) { return one.rows != nullptr; });
  if (first == answers.end()) return true;
  const SqlRows rows = to_sql_rows(first->rows.get());
  return rows.size() != 1 || !is_off(rows.front().front());
}

// Errors such as 1062 are about business rows here, and would come again.
MysqlTransaction::Failed MysqlTransaction::failed_by(const SessionFailure& failure) {
  const bool gave_way = is_contention(failure.code);
  const bool is_worth_another_try =
      failure.is_lost() || gave_way || is_other_server(Failure{failure.code});
  return {failure_text(failure), failure.sqlstate, is_worth_another_try, gave_way};
}

std::vector<StatementResult> MysqlTransaction::ask(std::string_view sql, Millis patience) {
  auto answers = session_.ask(sql, patience);
  if (answers) return std::move(*answers);
  failed_ = failed_by(answers.error());
  return {};
}

SqlRows MysqlTransaction::run(std::string_view sql, std::span<const SqlValue> values) {
  if (failed()) return {};
  if (const auto command = transaction_command(sql); !command.empty()) {
    fail(fmt::format(
        "{} is not allowed: it ends a transaction, and the work is in one of its store", command));
    return {};
  }
  if (has_several_statements(sql)) return fail("more than one statement"), SqlRows();
  const auto text = with_values(sql, values);
  if (!text) return fail(text.error()), SqlRows();
  if (!is_plain(sql) && !mark()) return {};
  const auto answers = ask(*text, limits::transaction_statement_max);
  if (failed()) return {};
  return last_rows(answers);
}

SqlRows MysqlTransaction::run_internal(InternalStatement which, std::span<const SqlValue> values) {
  if (failed()) return {};
  auto rows = ask_internal(session_, which, values);
  if (rows) return std::move(*rows);
  failed_ = failed_by(rows.error());
  return {};
}

// The work has read the results of its own statements; the connection still has the last error.
const std::string& MysqlTransaction::failure() const noexcept {
  if (was_lent_ && failed_.why.empty()) {
    MYSQL* const connection = session_.native();
    if (connection != nullptr && mysql_errno(connection) != 0) {
      failed_ = failed_by(
          {mysql_errno(connection), mysql_sqlstate(connection), mysql_error(connection), {}});
      if (failed_.why.empty()) failed_.why = "a statement of the work failed";
    }
  }
  return failed_.why;
}

bool MysqlTransaction::mark() {
  if (is_marked_ || failed()) return !failed();
  (void)ask(fmt::format("INSERT INTO {}.idem_lent (token) VALUES (x'{}')", session_.database(),
                        to_hex(attempt_.token.bytes)),
            limits::store_reply_max);
  is_marked_ = true;
  return !failed();
}

st_mysql* MysqlTransaction::connection() noexcept {
  (void)mark();
  was_lent_ = true;
  return failed_.why.empty() ? session_.native() : nullptr;
}

void MysqlTransaction::fail(std::string why) {
  if (failed()) return;
  failed_.why = why.empty() ? "the work did not say why" : std::move(why);
}

std::expected<SqlRows, SessionFailure> ask_internal(Session& session, InternalStatement which,
                                                    std::span<const SqlValue> values) {
  const InternalText text = text_of(which);
  if (text.reads_last) {
    auto changed = session.ask(with_given(text.then, values) + ";" + with_given(text.first, values),
                               limits::transaction_statement_max);
    if (!changed) return std::unexpected(std::move(changed.error()));
    return last_rows(*changed);
  }
  auto answers = session.ask(with_given(text.first, values), limits::transaction_statement_max);
  if (!answers) return std::unexpected(std::move(answers.error()));
  if (text.tells_change) {
    if (answers->front().matched == 0) return SqlRows();
    return SqlRows{{std::int64_t{1}}};
  }
  SqlRows rows = last_rows(*answers);
  const bool has_numbers = which == InternalStatement::try_redrive ||
                           which == InternalStatement::try_discard || !text.then.empty();
  if (!has_numbers) return rows;
  const std::string then = then_of(text.then, rows);
  if (then.empty()) return rows;
  auto changed = session.ask(with_given(then, values), limits::transaction_statement_max);
  if (!changed) return std::unexpected(std::move(changed.error()));
  return rows;
}

std::expected<Admission, NotAdmitted> admit_attempt(Session& session, const RecordId& id,
                                                    const Attempt& attempt) {
  const auto answers = session.ask(begin_sql(session) + admit_sql(session.database(), id, attempt),
                                   limits::store_reply_max);
  if (!answers) return std::unexpected(not_admitted(session, id, answers.error()));
  if (is_read_only(*answers)) return std::unexpected(not_admitted_by_replica(session));
  const auto reply = reply_in(*answers);
  if (reply && reply->verdict == Verdict::done) return Admission{id, attempt};
  roll_back(session);
  if (reply) return std::unexpected(NotAdmitted{superseded(*reply)});
  NotAdmitted none{ended(How::unavailable, "the record is damaged")};
  none.end.damaged = id;
  return std::unexpected(std::move(none));
}

std::expected<Admission, NotAdmitted> admit_reserve(Session& session, const Reserve& reserve) {
  const auto answers = session.ask(begin_sql(session) + reserve_sql(session.database(), reserve),
                                   limits::store_reply_max);
  if (!answers) return std::unexpected(not_admitted(session, reserve.id, answers.error()));
  if (is_read_only(*answers)) return std::unexpected(not_admitted_by_replica(session));
  // The first columns of idem_answer_reserve(): outcome, operation, fence, attempt,
  // recovery_point, again; the 20th is ended_lease.
  constexpr std::size_t ended_lease = 19;
  const SqlRows rows = last_rows(*answers);
  const bool is_row = rows.size() == 1 && rows.front().size() > ended_lease;
  if (is_row && text_in(rows.front()[0]) == "execute") {
    const SqlRow& row = rows.front();
    const Attempt attempt{static_cast<Fence>(number_in(row[2])), reserve.token};
    const Execute execute{reserve.id, attempt, text_in(row[4]), number_in(row[5]) != 0,
                          number_in(row[ended_lease]) != 0};
    return Admission{reserve.id, attempt, ReserveOutcome(execute)};
  }
  roll_back(session);
  NotAdmitted none{ended(How::not_run, {})};
  const bool is_running = is_row && text_in(rows.front()[0]) == "in_progress";
  none.is_held = is_running && number_in(rows.front()[5]) != 0;
  none.is_met = true;
  return std::unexpected(std::move(none));
}

Settled settle_and_commit(Session& session, const Admission& admission, const StoreCall& step,
                          bool is_marked) {
  std::string sql(same_transaction_sql);
  if (is_marked) {
    sql += fmt::format("DELETE FROM {}.idem_lent WHERE token = x'{}';", session.database(),
                       to_hex(admission.attempt.token.bytes));
  }
  sql += step_sql(session.database(), step);
  sql += ";COMMIT";
  const auto answers = session.ask(sql, limits::store_reply_max);
  if (answers) {
    Settled settled{ended(How::committed, {})};
    settled.end.reply = reply_in(*answers).value_or(OwnerReply{});
    return settled;
  }
  const SessionFailure& failure = answers.error();
  // The COMMIT had been sent.
  if (failure.is_lost()) return {ended(How::in_doubt, failure_text(failure))};
  constexpr unsigned no_savepoint = 1305;
  if (failure.code == no_savepoint && failure.before.empty()) {
    return {ended(How::in_doubt, failure_text(failure)), true};
  }
  if (const auto reply = reply_in(failure.before)) {
    if (reply->verdict != Verdict::done) return {superseded(*reply)};
    // The COMMIT itself failed: nobody knows how far it came.
    session.close();
    return {ended(How::in_doubt, failure_text(failure))};
  }
  const bool is_passing = is_contention(failure.code) || is_of_a_replica(failure);
  Settled settled{ended(is_passing ? How::unavailable : How::rolled_back, failure_text(failure),
                        failure.sqlstate)};
  settled.leads_elsewhere = leads_elsewhere(failure);
  if (is_damaged(failure)) settled.end.damaged = admission.id;
  return settled;
}

void roll_back(Session& session) {
  if (!session.is_open()) return;
  const auto rolled = session.ask("ROLLBACK", limits::store_reply_max);
  if (!rolled || session.is_in_transaction()) session.close();
}

bool left_nothing(Session& session, const Admission& admission) {
  if (!session.is_open()) return false;
  const auto answers =
      session.ask(fmt::format("SELECT count(*) FROM {}.idem_lent WHERE token = x'{}';ROLLBACK",
                              session.database(), to_hex(admission.attempt.token.bytes)),
                  limits::store_reply_max);
  if (!answers) return false;
  const SqlRows rows = last_rows(*answers);
  return rows.size() == 1 && rows.front().front() == SqlValue(std::int64_t{0});
}

TransactionEnd give_up(Session& session, const Admission& admission) {
  roll_back(session);
  auto end = ended(How::in_doubt,
                   "the work ended its transaction itself: its rows may be committed, and its"
                   " record is unknown");
  end.rows_may_be_committed = true;
  if (!session.is_open()) return end;
  const std::string database = session.database();
  const std::string token = to_hex(admission.attempt.token.bytes);
  const StoreCall call(
      MarkUnknown{admission.id, admission.attempt, "work_ended_transaction", {}, {}});
  (void)session.ask(fmt::format("{}{};CALL {}.idem_forget_attempt(x'{}', x'{}');"
                                "DELETE FROM {}.idem_lent WHERE token = x'{}';COMMIT",
                                begin_sql(session), step_sql(database, call), database,
                                to_hex(admission.id.bytes), token, database, token),
                    limits::store_reply_max);
  roll_back(session);
  return end;
}

}  // namespace idem::mysql

namespace idem::inline v0_1 {

st_mysql* mysql_connection(Transaction& transaction) noexcept {
  auto* const ours = dynamic_cast<mysql::MysqlTransaction*>(&transaction);
  return ours != nullptr ? ours->connection() : nullptr;
}

}  // namespace idem::inline v0_1
