#include "library/guard_rules.hpp"

#include "core/answers.hpp"
#include "core/preferences.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem {
namespace {

using library::Serving;
using library::to_answer;
using library::work_failed;
using How = TransactionEnd::How;

Response to_response(Answer answer) {
  return {answer.status, std::move(answer.headers),
          answer.shared_body ? *answer.shared_body : std::move(answer.body)};
}

/// What must not come from a handler: our own fields, and what would break the framing of others.
bool is_unfit(const Field& field) {
  const auto is_control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 127; };
  return is_reserved_field(field.name) || field.name.empty() ||
         std::ranges::any_of(field.name, is_control) ||
         std::ranges::any_of(field.value, is_control);
}

Response problem(const Problem& what) { return to_response(idem::to_answer(what)); }

bool is_one_of(std::string_view name, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const auto& one) { return equal_names(one, name); });
}

RequestDigest digest_of(const Request& request, const FingerprintRule& rule) {
  std::vector<std::string_view> chosen;
  FingerprintParts parts{.method = request.method,
                         .target = request.target,
                         .content_type = {},
                         .chosen_headers = {},
                         .body = request.body,
                         .rule = &rule};
  for (const Field& field : request.headers) {
    if (equal_names(field.name, "Content-Type")) parts.content_type = field.value;
    if (is_one_of(field.name, rule.headers)) chosen.insert(chosen.end(), {field.name, field.value});
  }
  parts.chosen_headers = chosen;
  return RequestDigest(parts);
}

}  // namespace

namespace library {
namespace {

thread_local bool in_work = false;

}  // namespace

InWork::InWork() { in_work = true; }
InWork::~InWork() { in_work = false; }
bool InWork::is_now() noexcept { return in_work; }

Answer to_answer(Response response) {
  std::erase_if(response.headers, is_unfit);
  return {response.status, std::move(response.headers), std::move(response.body), nullptr};
}

// Says nothing of what went wrong: that is for the log.
Response work_failed(const RecordId& id) {
  return problem({.code = ProblemCode::attempt_released,
                  .detail = "The work failed, and nothing of it is there. Ask again with this key.",
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

Guard::Rules::Rules(Engine::Parts& parts, GuardOptions options)
    : parts_(parts), options_(std::move(options)) {
  IDEM_ASSERT(options_.lease > Millis{0} && options_.run_max > Millis{0});
  IDEM_ASSERT(options_.retention > Millis{0} && !options_.key_fields.empty());
  IDEM_ASSERT(check_rule(options_.fingerprint).has_value());
}

class Guard::Rules::Run final : public Execution {
 public:
  Run(const Rules& rules, const Serving& serving, const Send& send)
      : rules_(rules), serving_(serving), id_(send.id), attempt_(send.attempt) {}

  const RecordId& id() const noexcept override { return id_; }
  const Attempt& attempt() const noexcept override { return attempt_; }
  Millis lease_left() const override { return serving_.lease_left(); }

  Outcome commit(const TransactionWork& work) override {
    return rules_.commit(work, id_, attempt_);
  }

 private:
  const Rules& rules_;
  const Serving& serving_;
  RecordId id_;
  Attempt attempt_;
};

Outcome Guard::Rules::commit(const TransactionWork& work, const RecordId& id,
                             const Attempt& attempt) const {
  auto* const transactions = parts_.store->transactions();
  IDEM_ASSERT(transactions != nullptr);
  Outcome said;
  InTransaction what = transaction_of(work, said);
  what.id = id;
  what.attempt = attempt;
  const TransactionEnd end = transactions->run(std::move(what));
  return outcome_of(end, std::move(said), id, attempt);
}

// The order of protocol.md §6: scope, key syntax, fingerprint, reserve.
std::expected<Reserve, Response> Guard::Rules::reserve_of(const Request& request) const {
  if (request.scope.empty()) {
    return std::unexpected(problem(
        {.code = ProblemCode::scope_missing, .detail = "Who asks is not known to this service."}));
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
  for (const Secret& older : identity.older) {
    reserve.also.push_back(
        {record_id(older, reserve.scope, reserve.operation, *key), digest.under(older)});
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
  // A handler is not sent anywhere: its steps look at the lease one by one.
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
  parts_.options.log(LogLevel::error, "handler_threw", {{"operation_ref", to_hex(id.bytes)}});
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

ExchangeEvent Guard::Rules::event_of(Outcome outcome, const Attempt& attempt) const {
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
    UpstreamAnswered answered{};
    answered.answer = to_answer(std::move(not_executed->answer));
    answered.says = UpstreamSays::not_executed;
    return answered;
  }
  Answer answer = to_answer(std::get<Response>(std::move(outcome)));
  const bool keeps_body = answer.body.size() <= options_.response_body_bytes_max;
  return WorkAnswered{std::move(answer), keeps_body};
}

InTransaction Guard::Rules::transaction_of(const TransactionWork& work, Outcome& said) const {
  InTransaction what;
  what.work = [this, &work, &said](Transaction& transaction, const RecordId& id,
                                   const Attempt& attempt) -> std::optional<StoreCall> {
    {
      const library::InWork now;
      said = work(transaction);
    }
    const auto* const response = std::get_if<Response>(&said);
    if (response == nullptr) return std::nullopt;
    return complete_with(*response, id, attempt);
  };
  return what;
}

Complete Guard::Rules::complete_with(const Response& response, const RecordId& id,
                                     const Attempt& attempt) const {
  const bool keeps_body = response.body.size() <= options_.response_body_bytes_max;
  Answer head = to_answer(Response{response.status, response.headers, {}});
  Complete complete{id, attempt, stored_head(head, keeps_body), {}};
  if (keeps_body) complete.response.body = response.body;
  return complete;
}

Outcome Guard::Rules::outcome_of(const TransactionEnd& end, Outcome said, const RecordId& id,
                                 const Attempt& attempt) const {
  if (end.how == How::committed) {
    return Committed{std::get<Response>(std::move(said)), end.reply, attempt};
  }
  if (!end.why.empty()) {
    parts_.options.log(LogLevel::warning, "transaction_failed",
                       {{"operation_ref", to_hex(id.bytes)}, {"why", end.why}});
  }
  if (end.may_stand_alone) return OutcomeUnknown{"work_ended_transaction", {}};
  const bool says_how =
      std::holds_alternative<NotExecuted>(said) || std::holds_alternative<OutcomeUnknown>(said);
  if (end.how == How::rolled_back && says_how) return said;
  return NotCommitted{work_failed(id)};
}

Response Guard::Rules::serve(const Request& request, const Handler& handler) const {
  if (library::InWork::is_now()) return called_from_work();
  const Engine::Parts::Busy busy(parts_);
  auto reserve = reserve_of(request);
  if (!reserve) return std::move(reserve.error());
  const auto serving = make_serving(request, std::move(*reserve), options_.wait);
  return drive(serving, serving->start(), [&](const Send& send) {
    Run run(*this, *serving, send);
    return event_of(handler(request, run), send.attempt);
  });
}

/// It would wait for the thread, or the connection, that it holds.
Response Guard::Rules::called_from_work() const {
  parts_.options.log(LogLevel::error, "guard_called_from_work", {});
  return library::store_unavailable();
}

Response Guard::Rules::store_unavailable(std::string why) const {
  parts_.options.log(LogLevel::error, "store_error", {{"why", std::move(why)}});
  return library::store_unavailable();
}

auto Guard::Rules::in_one_commit(const Request& request, const TransactionWork& work) const
    -> std::variant<Response, AfterOneCommit> {
  auto* const transactions = parts_.store->transactions();
  IDEM_ASSERT(transactions != nullptr);
  auto reserve = reserve_of(request);
  if (!reserve) return std::move(reserve.error());
  const RecordId id = reserve->id;
  Outcome said;
  bool threw = false;
  const TransactionWork watched = [&](Transaction& transaction) -> Outcome {
    try {
      return work(transaction);
    } catch (...) {
      threw = true;
      throw;
    }
  };
  InTransaction what = transaction_of(watched, said);
  what.reserve = *reserve;
  TransactionEnd end{.how = How::in_doubt};
  try {
    end = transactions->run(std::move(what));
  } catch (...) {
    // Anything but the work's own may have come after the commit.
    if (threw) end = {.how = How::rolled_back, .why = "the work threw"};
    said = NotCommitted{};
  }
  if (end.how == How::unavailable) {
    return store_unavailable(end.why);
  }
  if (end.how == How::committed) {
    Answer answer = to_answer(std::get<Response>(std::move(said)));
    mark_outcome(answer, "stored", end.reply.expires_at);
    return to_response(std::move(answer));
  }
  const bool is_unknown = end.may_stand_alone || std::holds_alternative<OutcomeUnknown>(said);
  if (end.how == How::rolled_back && !is_unknown) {
    const Outcome outcome = outcome_of(end, std::move(said), id, {});
    const auto* const told = std::get_if<NotExecuted>(&outcome);
    Answer answer = to_answer(told != nullptr ? told->answer : work_failed(id));
    mark_outcome(answer, "released", std::nullopt);
    return to_response(std::move(answer));
  }
  return AfterOneCommit{std::move(*reserve), std::move(end), is_unknown};
}

// Answered by the record that is there; or in doubt, and then the same token finds out: it is
// granted the attempt only where nothing was committed.
ExchangeAction Guard::Rules::AfterOneCommit::first_action(Serving& serving) const {
  ExchangeAction action = serving.start();
  if (end.how != How::not_run) return action;
  return serving.on(StoreAnswered{StoreReply(*end.reserved)});
}

ExchangeEvent Guard::Rules::event_after(const AfterOneCommit& after, const Send& send) const {
  if (after.is_unknown) return event_of(OutcomeUnknown{"work_said_unknown", {}}, send.attempt);
  return event_of(NotExecuted{work_failed(send.id)}, send.attempt);
}

Response Guard::Rules::serve_in_transaction(const Request& request,
                                            const TransactionWork& work) const {
  if (library::InWork::is_now()) return called_from_work();
  const Engine::Parts::Busy busy(parts_);
  auto begun = in_one_commit(request, work);
  if (auto* const answer = std::get_if<Response>(&begun)) return std::move(*answer);
  const auto& after = std::get<AfterOneCommit>(begun);
  const auto serving = make_serving(request, after.reserve, options_.wait);
  return drive(serving, after.first_action(*serving),
               [&](const Send& send) { return event_after(after, send); });
}

Guard::Guard(Engine& engine, GuardOptions options)
    : rules_(std::make_unique<Rules>(engine.parts(), std::move(options))) {
  // Nothing tells a handler how far the one before it came: that is what phases are for.
  IDEM_ASSERT(rules_->options().after_crash != LeasePolicy::resume);
}

Guard::~Guard() = default;

Response Guard::serve(const Request& request, const Handler& handler) {
  return rules_->serve(request, handler);
}

Response Guard::serve_in_transaction(const Request& request, const TransactionWork& work) {
  return rules_->serve_in_transaction(request, work);
}

}  // namespace idem
