#include "library/guard_rules.hpp"

#include "core/exchange/answers.hpp"
#include "core/exchange/preferences.hpp"
#include "library/misuse.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem {
namespace {

using library::Serving;
using library::to_answer;
using library::work_failed;
using How = TransactionEnd::How;

/// Fields that a handler must not set: Idem's own, and those that would break the framing.
bool is_not_returned(const Field& field) {
  const auto is_control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 127; };
  return is_reserved_field(field.name) || field.name.empty() ||
         std::ranges::any_of(field.name, is_control) ||
         std::ranges::any_of(field.value, is_control);
}

Response problem(const Problem& what) { return library::to_response(idem::to_answer(what)); }

bool is_one_of(std::string_view name, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const auto& one) { return equal_names(one, name); });
}

RequestDigest digest_of(const Request& request, const FingerprintRule& rule) {
  std::vector<std::string_view> chosen;
  std::vector<std::string_view> codings;
  FingerprintParts parts{.method = request.method,
                         .target = request.target,
                         .content_type = {},
                         .chosen_headers = {},
                         .body = request.body,
                         .rule = &rule};
  for (const Field& field : request.headers) {
    if (equal_names(field.name, "Content-Type")) parts.content_type = field.value;
    if (equal_names(field.name, "Content-Encoding")) codings.push_back(field.value);
    if (counts_always(field.name) || is_one_of(field.name, rule.headers)) {
      chosen.insert(chosen.end(), {field.name, field.value});
    }
  }
  parts.chosen_headers = chosen;
  parts.content_encoding = codings;
  return RequestDigest(parts);
}

}  // namespace

namespace library {

Response to_response(WireAnswer answer) {
  return {answer.status, std::move(answer.headers),
          answer.shared_body ? *answer.shared_body : std::move(answer.body)};
}

WireAnswer to_answer(Response response) {
  std::erase_if(response.headers, is_not_returned);
  return {response.status, std::move(response.headers), std::move(response.body), nullptr};
}

std::string what_is_wrong(const Response& response) {
  if (response.status >= 200 && response.status <= 599) return {};
  return "a Response has the status " + std::to_string(response.status) +
         ": answer with a final status, 200 to 599";
}

// The cause is in the log, not in the answer.
Response work_failed(const RecordId& id) {
  return problem(
      {.code = ProblemCode::attempt_released,
       .detail = "The work failed, and nothing was committed. Repeat the request with this key.",
       .status = 500,
       .operation = id,
       .state = State::failed_retryable});
}

Response store_unavailable() { return to_response(store_unavailable_answer(Millis{1000})); }

void Ending::keep_large_body(ExchangeEvent& event) {
  auto* const answered = std::get_if<WorkAnswered>(&event);
  if (answered != nullptr && !answered->keeps_body) large_body_ = std::move(answered->answer.body);
}

std::optional<Response> Ending::answer_of(ExchangeAction& action) {
  if (auto* stream = std::get_if<StreamThrough>(&action)) {
    stream->head.body = std::move(large_body_);
    return to_response(std::move(stream->head));
  }
  auto* const answer = std::get_if<AnswerClient>(&action);
  if (answer == nullptr) return std::nullopt;
  return to_response(std::move(answer->answer));
}

}  // namespace library

class Guard::Rules::Run final : public Execution {
 public:
  Run(const Rules& rules, const Serving& serving, const Send& send)
      : rules_(rules), serving_(serving), id_(send.id), attempt_(send.attempt) {}

  const RecordId& id() const noexcept override { return id_; }
  const Attempt& attempt() const noexcept override { return attempt_; }
  Millis lease_left() const override { return serving_.lease_left(); }

  Outcome commit(const TransactionWork& work) override {
    // Rows that may be there are not written a second time.
    if (uncommitted_ && std::holds_alternative<OutcomeUnknown>(*uncommitted_)) return *uncommitted_;
    uncommitted_ = NotCommitted{};  // If the work throws.
    Outcome outcome = rules_.commit(work, id_, attempt_);
    uncommitted_ = uncommitted(outcome);
    return outcome;
  }
  const std::optional<Outcome>& uncommitted_rows() const noexcept { return uncommitted_; }

 private:
  const Rules& rules_;
  const Serving& serving_;
  RecordId id_;
  Attempt attempt_;
  std::optional<Outcome> uncommitted_{};
};

Outcome Guard::Rules::commit(const TransactionWork& work, const RecordId& id,
                             const Attempt& attempt) const {
  Transactions& transactions = transactions_for("commit()");
  if (!work) library::misused("commit(): the work is null; pass the function that writes the rows");
  WorkEnd of_work;
  InTransaction what = transaction_of(work, of_work);
  what.id = id;
  what.attempt = attempt;
  TransactionEnd end{.how = How::in_doubt};
  try {
    end = transactions.run(std::move(what));
  } catch (...) {
    // The store threw: the work has returned OutcomeUnknown, and does not run again after that.
    if (!std::holds_alternative<OutcomeUnknown>(of_work.outcome)) {
      // The caller gets the exception alone, which need not name the failed statement.
      log_failed(id, of_work.thrown.empty() ? library::thrown_by("the store") : of_work.thrown);
      throw;
    }
    end.why = library::thrown_by("the store");
  }
  return outcome_of(end, std::move(of_work.outcome), id, attempt);
}

// The order of protocol.md §6: scope, key syntax, fingerprint, reserve.
std::expected<Reserve, Response> Guard::Rules::reserve_of(const Request& request) const {
  if (request.scope.empty()) {
    return std::unexpected(problem(
        {.code = ProblemCode::scope_missing, .detail = "This service does not know the caller."}));
  }
  std::vector<std::string_view> lines;
  for (const Field& field : request.headers) {
    if (is_one_of(field.name, options_.key_fields)) lines.push_back(field.value);
  }
  const auto key = parse_key(lines, options_.key);
  if (!key) {
    const bool is_missing = key.error().code == KeyError::Code::missing;
    return std::unexpected(
        problem({.code = is_missing ? ProblemCode::key_missing : ProblemCode::key_invalid,
                 .detail = key.error().detail}));
  }
  if (parts_.is_overloaded()) return std::unexpected(library::store_unavailable());
  const Identity& identity = parts_.store->identity();
  const auto path = std::string_view(request.target).substr(0, request.target.find('?'));
  const RequestDigest digest = digest_of(request, options_.fingerprint);
  Reserve reserve;
  reserve.scope = request.scope;
  reserve.operation =
      options_.operation.empty() ? request.method + " " + std::string(path) : options_.operation;
  reserve.id = record_id(identity.secret, reserve.scope, reserve.operation, *key);
  reserve.fingerprints = digest.under(identity.secret);
  std::vector<std::string> names = former_.operations(request.method, path);
  std::erase(names, reserve.operation);
  for (const std::string& name : names) {
    reserve.also.push_back({record_id(identity.secret, reserve.scope, name, *key), {}});
  }
  names.insert(names.begin(), reserve.operation);
  for (const Secret& older : identity.older) {
    for (const std::string& name : names) {
      reserve.also.push_back({record_id(older, reserve.scope, name, *key), digest.under(older)});
    }
  }
  reserve.token = random_token();
  reserve.owner = parts_.options.owner;
  reserve.lease = options_.lease;
  reserve.lease_policy = options_.after_crash;
  reserve.retention = options_.retention;
  reserve.tombstone = options_.tombstone;
  reserve.generation = identity.generation;
  return reserve;
}

ExchangeSettings Guard::Rules::settings_of(const Request& request, Millis wait_max) const {
  PreferredWait preferred;
  for (const Field& field : request.headers) {
    if (equal_names(field.name, "Prefer")) preferred.read(field.value);
  }
  const WaitRule wait = wait_rule(wait_max, wait_max, preferred.value());
  // A handler has no dispatch: each of its steps checks the lease.
  return {.dispatch_timeout = Millis{0},
          .renew_interval = options_.lease / 3,
          .wait = wait.time,
          .wait_applied = wait.applied};
}

std::shared_ptr<Serving> Guard::Rules::make_serving(const Request& request, Reserve reserve,
                                                    Millis wait_max) const {
  return std::make_shared<Serving>(settings_of(request, wait_max), std::move(reserve));
}

void Guard::Rules::log_thrown(const RecordId& id) const {
  parts_.options.log(
      LogLevel::error, "handler_threw",
      {{"operation_ref", to_hex(id.bytes)}, {"why", library::thrown_by("the handler")}});
}

void Guard::Rules::log_failed(const RecordId& id, const std::string& why) const {
  parts_.options.log(LogLevel::warning, "transaction_failed",
                     {{"operation_ref", to_hex(id.bytes)}, {"why", why}});
}

Response Guard::Rules::drive(const std::shared_ptr<Serving>& serving, ExchangeAction action,
                             const std::function<ExchangeEvent(const Send&)>& turn,
                             const AskReserve& ask_reserve) const {
  const Engine::Parts::Renewed renewed(parts_, serving, options_.run_max);
  library::Patience patience;
  library::Ending ending;
  for (;;) {
    if (const auto* send = std::get_if<Send>(&action)) {
      ExchangeEvent event = WorkUnknown{"handler_threw", {}};
      try {
        event = turn(*send);
      } catch (...) {
        log_thrown(send->id);
      }
      patience.renew();
      ending.keep_large_body(event);
      action = serving->on(std::move(event));
      continue;
    }
    if (auto answer = ending.answer_of(action)) {
      parts_.note_end(*serving);
      if (serving->owes_settlement()) parts_.settle_later(serving);
      return std::move(*answer);
    }
    const auto* const asked = std::get_if<Ask>(&action);
    const auto* const reserve = asked != nullptr ? std::get_if<Reserve>(&asked->call) : nullptr;
    if (ask_reserve && reserve != nullptr) {
      StoreResult result = ask_reserve(*reserve);
      action = serving->on(StoreAnswered{std::move(result)});
      continue;
    }
    auto next = library::carry_out(parts_, serving, action, patience);
    IDEM_ASSERT(next.has_value());
    action = std::move(*next);
  }
}

// NotExecuted of the work is only about its rows; the handler has gone on since.
std::optional<Outcome> Guard::Rules::uncommitted(const Outcome& committed) {
  if (std::holds_alternative<Committed>(committed)) return std::nullopt;
  const bool has_cause = std::holds_alternative<NotCommitted>(committed) ||
                         std::holds_alternative<OutcomeUnknown>(committed);
  return has_cause ? committed : Outcome(NotCommitted{});
}

ExchangeEvent Guard::Rules::event_of(Outcome outcome, const RecordId& id, const Attempt& attempt,
                                     const std::optional<Outcome>& uncommitted) const {
  const auto log = [&](std::string_view event, std::string why) {
    parts_.options.log(LogLevel::error, event,
                       {{"operation_ref", to_hex(id.bytes)}, {"why", std::move(why)}});
  };
  if (uncommitted && std::holds_alternative<Response>(outcome)) {
    log("answer_without_rows",
        "the handler answered with a Response after its commit() had failed: return what commit() "
        "returned, NotExecuted if nothing else was done, or commit the answer");
    outcome = *uncommitted;
    if (auto* const failed = std::get_if<NotCommitted>(&outcome)) {
      failed->answer = library::work_failed(id);
    }
  }
  if (auto* committed = std::get_if<Committed>(&outcome)) {
    const bool is_its_own =
        committed->reply.verdict == Verdict::done && committed->attempt == attempt;
    if (!is_its_own) return WorkUnknown{"handler_said_committed", {}};
    return WorkCommitted{to_answer(std::move(committed->answer)), committed->reply};
  }
  if (auto* unknown = std::get_if<OutcomeUnknown>(&outcome)) {
    return WorkUnknown{std::move(unknown->error_code), std::move(unknown->reference)};
  }
  if (auto* not_committed = std::get_if<NotCommitted>(&outcome)) {
    if (options_.after_crash != LeasePolicy::rerun) return WorkUnknown{"not_committed", {}};
    outcome = NotExecuted{std::move(not_committed->answer)};
  }
  if (auto* not_executed = std::get_if<NotExecuted>(&outcome)) {
    if (auto why = library::what_is_wrong(not_executed->answer); !why.empty()) {
      log("answer_invalid", std::move(why));
      not_executed->answer = library::work_failed(id);
    }
    UpstreamAnswered answered{};
    answered.answer = to_answer(std::move(not_executed->answer));
    answered.declared = DeclaredOutcome::not_executed;
    return answered;
  }
  if (auto why = library::what_is_wrong(std::get<Response>(outcome)); !why.empty()) {
    log("answer_invalid", std::move(why));
    return WorkUnknown{"answer_invalid", {}};
  }
  WireAnswer answer = to_answer(std::get<Response>(std::move(outcome)));
  const bool keeps_body = answer.body.size() <= options_.response_body_bytes_max;
  return WorkAnswered{std::move(answer), keeps_body};
}

InTransaction Guard::Rules::transaction_of(const TransactionWork& work, WorkEnd& end) const {
  InTransaction what;
  what.work = [this, &work, &end](Transaction& transaction, const RecordId& id,
                                  const Attempt& attempt) -> std::optional<StoreCall> {
    // It may have run before: an effect outside of the database must not happen a second time.
    if (std::holds_alternative<OutcomeUnknown>(end.outcome)) return std::nullopt;
    end = {NotCommitted{}, {}};
    try {
      const library::InWork now;
      end.outcome = work(transaction);
    } catch (...) {
      end.thrown = library::thrown_by("the work", transaction.failure());
      throw;
    }
    const auto* const response = std::get_if<Response>(&end.outcome);
    if (response == nullptr) return std::nullopt;
    if (auto why = library::what_is_wrong(*response); !why.empty()) {
      transaction.fail(std::move(why));
      return std::nullopt;
    }
    return complete_with(*response, id, attempt);
  };
  return what;
}

Complete Guard::Rules::complete_with(const Response& response, const RecordId& id,
                                     const Attempt& attempt) const {
  const bool keeps_body = response.body.size() <= options_.response_body_bytes_max;
  WireAnswer head = to_answer(Response{response.status, response.headers, {}});
  Complete complete{id, attempt, stored_head(head, keeps_body), {}};
  if (keeps_body) complete.response.body = response.body;
  return complete;
}

Outcome Guard::Rules::outcome_of(const TransactionEnd& end, Outcome of_work, const RecordId& id,
                                 const Attempt& attempt) const {
  if (end.how == How::committed) {
    return Committed{std::get<Response>(std::move(of_work)), end.reply, attempt};
  }
  if (!end.why.empty()) log_failed(id, end.why);
  if (end.rows_may_be_committed) return OutcomeUnknown{"work_ended_transaction", {}};
  // It is about effects outside of the database, whether or not the rows were committed.
  if (std::holds_alternative<OutcomeUnknown>(of_work)) return of_work;
  if (end.how == How::rolled_back && std::holds_alternative<NotExecuted>(of_work)) return of_work;
  return NotCommitted{work_failed(id), end.sqlstate, end.why, end.how == How::in_doubt};
}

Response Guard::Rules::serve(const Request& request, const Handler& handler) const {
  expect_handler(handler != nullptr);
  if (auto refused = refused_here()) return std::move(*refused);
  const Engine::Parts::Busy busy(parts_);
  auto reserve = reserve_of(request);
  if (!reserve) return std::move(reserve.error());
  const auto serving = make_serving(request, std::move(*reserve), options_.wait);
  return drive(serving, serving->start(), [&](const Send& send) {
    Run run(*this, *serving, send);
    Outcome outcome = handler(request, run);
    return event_of(std::move(outcome), send.id, send.attempt, run.uncommitted_rows());
  });
}

Response Guard::Rules::store_unavailable(const std::string& why) const {
  parts_.store_failed(why);
  return library::store_unavailable();
}

Guard::Guard(Engine& engine, GuardOptions options)
    : rules_(std::make_unique<Rules>("Guard", engine, std::move(options))) {
  library::refuse_resume("Guard", rules_->options());
}

Guard::~Guard() { rules_->detach(); }

Response Guard::serve(const Request& request, const Handler& handler) {
  return rules_->serve(request, handler);
}

Response Guard::serve_in_transaction(const Request& request, const TransactionWork& work) {
  return rules_->serve_in_transaction(request, work);
}

}  // namespace idem
