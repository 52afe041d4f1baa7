#include "core/exchange/answers.hpp"
#include "core/record/lease_end.hpp"
#include "library/guard_rules.hpp"
#include "library/misuse.hpp"

/// Reserve, rows and completion in one commit.
namespace idem {
namespace {

using library::Serving;
using library::to_answer;
using library::to_response;
using library::work_failed;
using How = TransactionEnd::How;

}  // namespace

auto Guard::Rules::in_one_commit(const Request& request, const TransactionWork& work) const
    -> std::variant<Response, AfterOneCommit> {
  Transactions& transactions = transactions_for("serve_in_transaction()");
  auto reserve = reserve_of(request);
  if (!reserve) return std::move(reserve.error());
  const RecordId id = reserve->id;
  WorkEnd work_end;
  InTransaction what = transaction_of(work, work_end);
  what.reserve = *reserve;
  TransactionEnd end{.how = How::in_doubt};
  try {
    end = transactions.run(std::move(what));
  } catch (...) {
    // An exception of the store may have come after the commit.
    const std::string& thrown = work_end.thrown;
    end.why = thrown.empty() ? library::thrown_by("the store") : thrown;
    if (!thrown.empty()) end.how = How::rolled_back;
    if (!std::holds_alternative<OutcomeUnknown>(work_end.outcome))
      work_end.outcome = NotCommitted{};
  }
  Outcome of_work = std::move(work_end.outcome);
  const bool is_unknown =
      end.rows_may_be_committed || std::holds_alternative<OutcomeUnknown>(of_work);
  if (end.reserved && (end.how == How::committed || end.how == How::not_run)) {
    parts_.store_answered();
    log_lease_end(parts_.options.log, *end.reserved);
  }
  if (end.how == How::unavailable && end.damaged) {
    parts_.damage.note({StoreError::Code::damaged, end.why, end.damaged});
    return to_response(record_damaged_answer(*end.damaged));
  }
  if (end.how == How::unavailable && !is_unknown) {
    return store_unavailable(end.why);
  }
  if (end.how == How::committed) {
    WireAnswer answer = to_answer(std::get<Response>(std::move(of_work)));
    mark_outcome(answer, "stored", end.reply.expires_at);
    return to_response(std::move(answer));
  }
  if (end.how == How::rolled_back && !is_unknown) {
    const Outcome outcome = outcome_of(end, std::move(of_work), id, {});
    const auto* const not_executed = std::get_if<NotExecuted>(&outcome);
    WireAnswer answer = to_answer(not_executed != nullptr ? not_executed->answer : work_failed(id));
    mark_outcome(answer, "released", std::nullopt);
    return to_response(std::move(answer));
  }
  return AfterOneCommit{std::move(*reserve), std::move(end), is_unknown};
}

// Either the reserve's outcome is known; or the commit is in doubt, and a reserve with the same
// token finds out: the store grants the attempt only if nothing was committed.
ExchangeAction Guard::Rules::AfterOneCommit::first_action(Serving& serving) const {
  ExchangeAction action = serving.start();
  if (end.how != How::not_run) return action;
  return serving.on(StoreAnswered{StoreReply(*end.reserved)});
}

ExchangeEvent Guard::Rules::event_after(const AfterOneCommit& after, const Send& send) const {
  Outcome outcome = NotExecuted{work_failed(send.id)};
  if (after.is_unknown) outcome = OutcomeUnknown{"work_said_unknown", {}};
  return event_of(std::move(outcome), send.id, send.attempt, std::nullopt);
}

Response Guard::Rules::serve_in_transaction(const Request& request,
                                            const TransactionWork& work) const {
  expect_handler(work != nullptr);
  if (auto refused = refused_here()) return std::move(*refused);
  const Engine::Parts::Busy busy(parts_);
  auto begun = in_one_commit(request, work);
  if (auto* const answer = std::get_if<Response>(&begun)) return std::move(*answer);
  const auto& after = std::get<AfterOneCommit>(begun);
  const auto serving = make_serving(request, after.reserve, options_.wait);
  return drive(serving, after.first_action(*serving),
               [&](const Send& send) { return event_after(after, send); });
}

}  // namespace idem
