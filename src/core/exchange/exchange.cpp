#include "core/exchange/exchange.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

// What a client is to do behind a detail.
const std::string again = " Send the same request again with the same key.";

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

WireAnswer unreachable_answer(std::string detail, const RecordId& id, Millis retry_after) {
  return to_answer({.code = ProblemCode::upstream_unreachable,
                    .detail = std::move(detail),
                    .operation = id,
                    .state = State::failed_retryable,
                    .retry_after = retry_after});
}

std::string_view describe(UpstreamLost::How how) {
  switch (how) {
    case UpstreamLost::How::timeout:
      return "upstream_timeout";
    case UpstreamLost::How::closed:
      return "upstream_closed";
    case UpstreamLost::How::malformed:
      return "upstream_malformed";
    case UpstreamLost::How::cut:
      return "response_cut";
    case UpstreamLost::How::unframed:
      return "response_unframed";
  }
  return "upstream_lost";
}

bool tells_a_replay(const Field& field) { return equal_names(field.name, "Idempotent-Replayed"); }

bool has_field(const WireAnswer& answer, std::string_view name) {
  return std::any_of(answer.headers.begin(), answer.headers.end(),
                     [&](const Field& field) { return equal_names(field.name, name); });
}

}  // namespace

Exchange::Exchange(const ExchangeSettings& settings, Reserve reserve)
    : settings_(settings), reserve_(std::move(reserve)), delay_(settings.settle_retry_first) {
  attempt_.token = reserve_.token;
}

ExchangeAction Exchange::start(MonotonicTime now) {
  started_at_ = now;
  lease_end_ = now + reserve_.lease;
  renew_at_ = now + settings_.renew_interval;
  if (!claimed_) return Ask{asking()};
  phase_ = Phase::marking;
  return Ask{Dispatched{reserve_.id, attempt_}};
}

ExchangeAction Exchange::on(ExchangeEvent event, MonotonicTime now) {
  return std::visit(
      Overloaded{
          [&](StoreAnswered& answered) { return on_store(std::move(answered.result), now); },
          [&](RetryDue&) -> ExchangeAction {
            if (phase_ == Phase::reading) return Ask{Find{reserve_.id}};
            if (settling_) return Ask{settlement()};
            // The lease is still counted from the first asking: a repeat never lengthens it.
            IDEM_ASSERT(phase_ == Phase::reserving);
            return Ask{asking()};
          },
          [&](UpstreamReady&) { return on_ready(now); },
          [&](UpstreamNotReached& event_) {
            IDEM_ASSERT(phase_ == Phase::connecting || phase_ == Phase::sending);
            return release_unsent("upstream_unreachable", std::move(event_.detail), now);
          },
          [&](UpstreamAnswered& answered) { return on_answered(std::move(answered)); },
          [&](UpstreamOversize& oversize) { return on_oversize(std::move(oversize)); },
          [&](UpstreamLost& lost) { return on_lost(lost, now); },
          [&](WorkAnswered& answered) { return on_work_answered(std::move(answered)); },
          [&](WorkCommitted& committed) { return on_committed(std::move(committed)); },
          [&](WorkUnknown& unknown) { return on_unknown(std::move(unknown)); },
          [&](WorkLeft&) { return on_left(now); },
          [&](ClientDeadline&) { return on_deadline(); },
          [&](Woken& woken) { return on_woken(woken, now); },
          [&](WaitOver&) { return still_running(now); },
      },
      event);
}

ExchangeAction Exchange::on_store(StoreResult result, MonotonicTime now) {
  switch (phase_) {
    case Phase::reserving:
      return on_reserve(std::move(result), now);
    case Phase::marking:
      return on_marked(std::move(result), now);
    case Phase::settling:
    case Phase::owing:
      return on_settle(std::move(result));
    case Phase::reading:
      return on_read(std::move(result));
    case Phase::connecting:
    case Phase::sending:
    case Phase::waiting:
    case Phase::done:
      break;
  }
  IDEM_ASSERT(!"a store reply without a call");
  return Done{};
}

ExchangeAction Exchange::on_reserve(StoreResult result, MonotonicTime now) {
  if (result) return on_outcome(std::get<ReserveOutcome>(std::move(*result)), now);
  // The store cannot release our own reservation either, if there is one.
  if (result.error().code == StoreError::Code::damaged) return finish_damaged(result.error());
  if (result.error().code != StoreError::Code::in_doubt) {
    // Refused or unavailable now; an earlier round in doubt may have left our reservation.
    if (reserve_in_doubt_) return on_deadline();
    return finish(store_error_answer(result.error(), store_retry_hint));
  }
  reserve_in_doubt_ = true;
  if (++reserve_rounds_ >= limits::reserve_rounds_max) return on_deadline();
  return retry_later();
}

ExchangeAction Exchange::on_outcome(ReserveOutcome outcome, MonotonicTime now) {
  return std::visit(
      Overloaded{
          [&](Execute& execute) -> ExchangeAction {
            reserve_.id = execute.id;
            attempt_ = execute.attempt;
            delay_ = settings_.settle_retry_first;
            if (reserve_.dispatched) {
              phase_ = Phase::connecting;
              return Connect{};
            }
            phase_ = Phase::marking;
            return Ask{Dispatched{reserve_.id, attempt_}};
          },
          [&](Replay& replay) {
            reserve_.id = replay.id;
            return finish(replay_answer(std::move(replay), reserve_.id));
          },
          [&](InProgress& running) { return on_running(running, now); },
          [&](KeyMisuse& misuse) {
            reserve_.id = misuse.id;
            return finish(
                misuse_answer(misuse, reserve_.fingerprints.front(), settings_.answers.preset));
          },
          [&](Unknown& unknown) -> ExchangeAction {
            reserve_.id = unknown.id;
            if (reserve_in_doubt_ && !goes_on() && !to_store_) {
              // It may be our own lost reservation, swept meanwhile. Nothing was sent under our
              // token, and only our token releases it; to another attempt this release is stale.
              reserve_in_doubt_ = false;
              return settle(
                  Release{reserve_.id,
                          {std::nullopt, reserve_.token},
                          ReleaseBasis::proven,
                          "reserve_in_doubt",
                          Millis{}},
                  unreachable_answer("The store's reply was lost; nothing was sent." + again,
                                     reserve_.id, store_retry_hint));
            }
            return finish(unknown_answer(unknown.reconcile_in, reserve_.id));
          },
          [&](Expired& expired) {
            reserve_.id = expired.id;
            return finish(expired_answer(reserve_.id));
          },
          [&](Pending& pending) { return on_pending(pending, now); },
          [&](QuotaExceeded& quota) {
            if (settings_.no_record) return finish(*settings_.no_record);
            return finish(to_answer(
                {.code = ProblemCode::quota_exceeded,
                 .detail =
                     "This scope has used up its quota of keys. Nothing ran; send the request "
                     "again with the same key after the time in Retry-After.",
                 .retry_after = quota.retry_after}));
          },
      },
      outcome);
}

ExchangeAction Exchange::on_marked(StoreResult result, MonotonicTime now) {
  if (!result && result.error().code == StoreError::Code::damaged) {
    return finish_damaged(result.error());
  }
  if (!result) {
    // The mark may or may not be there, but nothing was sent: release is right in both cases.
    return release_unsent("store_unavailable", "The store failed before anything was sent." + again,
                          now);
  }
  const auto reply = std::get<OwnerReply>(*result);
  if (reply.verdict != Verdict::done) {
    phase_ = Phase::reading;
    return Ask{Find{reserve_.id}};
  }
  phase_ = Phase::connecting;
  return Connect{};
}

ExchangeAction Exchange::on_ready(MonotonicTime now) {
  IDEM_ASSERT(phase_ == Phase::connecting || phase_ == Phase::sending);
  // §6: the last check before the first byte. A process that was stopped beyond its lease must not
  // send; it knows that it did not, so the release is proven.
  if (now + settings_.dispatch_timeout > lease_end_) {
    return release_unsent(
        "lease_too_short",
        "The lease no longer covered the dispatch timeout; nothing was sent." + again, now);
  }
  phase_ = Phase::sending;
  return Send{attempt_, reserve_.id, lease_end_ - settings_.dispatch_timeout};
}

// Earlier attempts may have committed phases, even if this one did nothing: the request stays open
// for the next attempt.
bool Exchange::goes_on() const noexcept { return reserve_.lease_policy == LeasePolicy::resume; }

ExchangeAction Exchange::release_unsent(std::string error_code, std::string detail,
                                        MonotonicTime now) {
  if (goes_on()) return on_left(now);
  WireAnswer answer = unreachable_answer(std::move(detail), reserve_.id, store_retry_hint);
  return settle(Release{reserve_.id, attempt_, ReleaseBasis::proven, std::move(error_code),
                        rest_before_next({})},
                std::move(answer));
}

ExchangeAction Exchange::on_answered(UpstreamAnswered event) { return conclude(std::move(event)); }

ExchangeAction Exchange::on_oversize(UpstreamOversize event) {
  stream_ = true;
  return conclude(std::move(event.head));
}

ExchangeAction Exchange::conclude(UpstreamAnswered event) {
  IDEM_ASSERT(phase_ == Phase::sending);
  WireAnswer& answer = event.answer;
  const Disposition meaning = disposition({.status = answer.status,
                                           .has_retry_after = has_field(answer, "Retry-After"),
                                           .while_sending = event.while_sending,
                                           .declared = event.declared},
                                          settings_.answers);
  const std::string code = "http_" + std::to_string(answer.status);
  switch (meaning) {
    case Disposition::store: {
      outcome_ = "stored";
      StoredResponse stored = stored_head(answer, !stream_ && settings_.store_body,
                                          settings_.replay_fields, settings_.trace);
      if (event.answers_rpc && stored.body_stored) {
        stored.headers.push_back({std::string(rpc_field), "id"});
      }
      return settle(Complete{reserve_.id, attempt_, std::move(stored), std::move(event.reference)},
                    std::move(answer));
    }
    case Disposition::release_proven:
    case Disposition::release_declared: {
      outcome_ = "released";
      const auto basis =
          meaning == Disposition::release_proven ? ReleaseBasis::proven : ReleaseBasis::declared;
      const Millis rest = rest_before_next(answer);
      return settle(Release{reserve_.id, attempt_, basis, code, rest}, std::move(answer));
    }
    case Disposition::unknown:
      break;
  }
  outcome_ = "unknown";
  return settle(
      MarkUnknown{reserve_.id, attempt_, code, settings_.reconcile_in, std::move(event.reference)},
      std::move(answer));
}

ExchangeAction Exchange::on_lost(const UpstreamLost& event, MonotonicTime now) {
  IDEM_ASSERT(phase_ == Phase::sending);
  // Declared safe to run again: a lost answer is no worse than a lost process.
  if (reserve_.lease_policy == LeasePolicy::rerun) return on_left(now);
  std::string code(describe(event.how));
  if (event.status) code += "_http_" + std::to_string(*event.status);
  const bool timeout = event.how == UpstreamLost::How::timeout;
  WireAnswer answer =
      outcome_unknown(timeout ? 504 : 502,
                      timeout ? "The upstream received the request and did not answer in time."
                              : "The upstream received the request and its answer was lost.",
                      settings_.reconcile_in);
  return settle(MarkUnknown{reserve_.id, attempt_, std::move(code), settings_.reconcile_in, {}},
                std::move(answer));
}

// The handler says how it ended, so the status decides nothing (§11, §12).
ExchangeAction Exchange::on_work_answered(WorkAnswered event) {
  IDEM_ASSERT(phase_ == Phase::sending);
  outcome_ = "stored";
  stream_ = !event.keeps_body;
  StoredResponse stored = stored_head(event.answer, event.keeps_body);
  return settle(Complete{reserve_.id, attempt_, std::move(stored), {}}, std::move(event.answer));
}

ExchangeAction Exchange::on_committed(WorkCommitted event) {
  IDEM_ASSERT(phase_ == Phase::sending && event.reply.verdict == Verdict::done);
  outcome_ = "stored";
  contradicted_ |= event.reply.is_contradicted;
  answer_ = std::move(event.answer);
  return settled_answer(event.reply);
}

ExchangeAction Exchange::on_unknown(WorkUnknown event) {
  IDEM_ASSERT(phase_ == Phase::sending);
  WireAnswer answer = outcome_unknown(502, "The work began, and its outcome is not known yet.");
  return settle(
      MarkUnknown{
          reserve_.id, attempt_, std::move(event.error_code), {}, std::move(event.reference)},
      std::move(answer));
}

ExchangeAction Exchange::on_left(MonotonicTime now) {
  left_for_ = std::max(left_for_, lease_end_ - now);
  phase_ = Phase::reading;
  return Ask{Find{reserve_.id}};
}

WireAnswer Exchange::outcome_unknown(int status, std::string detail,
                                     std::optional<Millis> reconcile_in) const {
  return first_unknown_answer(status, std::move(detail), reconcile_in, reserve_.id);
}

ExchangeAction Exchange::settle(StoreCall call, WireAnswer answer) {
  phase_ = Phase::settling;
  answer_ = std::move(answer);
  settling_ = std::move(call);
  return Ask{settlement()};
}

// May be asked for several times. Only the answer holds the body; it stays unchanged until the
// store confirms the settling.
StoreCall Exchange::settlement() const {
  StoreCall call = *settling_;
  if (auto* complete = std::get_if<Complete>(&call); complete && complete->response.body_stored) {
    complete->response.body = answer_.body;
  }
  return call;
}

ExchangeAction Exchange::on_settle(StoreResult result) {
  if (!result) {
    if (!result.error().is_final()) return retry_later();
    if (auto* const complete = std::get_if<Complete>(&*settling_);
        complete != nullptr && complete->response.body_stored &&
        result.error().code == StoreError::Code::unstorable) {
      // The work ran, and the store can hold that much: a retry learns it, and runs nothing.
      complete->response.body_stored = false;
      return Ask{settlement()};
    }
    // The store will never accept it (a damaged row), and a repeat cannot help. The record stays
    // for the sweeper, the operator and the evidence.
    settling_.reset();
    if (phase_ == Phase::owing) {
      phase_ = Phase::done;
      return Done{};
    }
    return finish(outcome_unknown(504, "The work ended, and Idem could not store how."));
  }
  const auto reply = std::get<OwnerReply>(*result);
  contradicted_ |= reply.is_contradicted;
  if (auto next = release_elsewhere(reply)) return std::move(*next);
  const bool owing = phase_ == Phase::owing;
  if (owing) {
    settling_.reset();
    phase_ = Phase::done;
    return Done{};
  }
  return settled_answer(reply);
}

// A reservation whose reply was lost may be under any of the names that were asked for.
std::optional<ExchangeAction> Exchange::release_elsewhere(const OwnerReply& reply) {
  auto* release = std::get_if<Release>(&*settling_);
  const bool in_doubt = release != nullptr && !release->attempt.fence;
  if (!in_doubt || reply.verdict != Verdict::stale || names_tried_ == reserve_.also.size()) {
    return std::nullopt;
  }
  release->id = reserve_.also[names_tried_++].id;
  return Ask{*settling_};
}

ExchangeAction Exchange::settled_answer(const OwnerReply& reply) {
  if (reply.verdict != Verdict::done) {
    phase_ = Phase::reading;
    if (!std::holds_alternative<Complete>(*settling_)) settling_.reset();
    return Ask{Find{reserve_.id}};
  }
  settling_.reset();
  if (!outcome_.empty())
    mark_outcome(answer_, outcome_, outcome_ == "stored" ? reply.expires_at : std::nullopt);
  if (stream_) {
    phase_ = Phase::done;
    return StreamThrough{std::move(answer_)};
  }
  return finish(std::move(answer_));
}

ExchangeAction Exchange::on_read(StoreResult result) {
  if (!result) {
    if (!result.error().is_final()) return retry_later();
    return finish(outcome_unknown(504, "Idem cannot read the record of this operation."));
  }
  const auto record = std::get<std::optional<Record>>(std::move(*result));
  if (record) return answer_from(*record);
  return finish(outcome_unknown(504, "The record of this operation is gone."));
}

ExchangeAction Exchange::answer_from(const Record& record) {
  const auto call = settling_ ? std::optional(settlement()) : std::nullopt;
  const auto* ours = call ? std::get_if<Complete>(&*call) : nullptr;
  switch (record.state) {
    case State::completed: {
      const bool is_own = record.attempt == attempt_;
      contradicted_ |= is_own && record.is_contested;
      // Settled by our own first write whose reply was lost: the client gets the whole answer.
      if (ours != nullptr && is_own && record.response == ours->response) {
        return settled_answer({Verdict::done, State::completed, record.expires_at});
      }
      const auto expires = record.expires_at.value_or(StoreTime{});
      WireAnswer answer = replay_answer(
          {*record.response, record.completed_at.value_or(expires), expires}, reserve_.id);
      // The service completed this very attempt itself (§17): nothing is repeated here.
      if (is_own) std::erase_if(answer.headers, tells_a_replay);
      return finish(std::move(answer));
    }
    case State::in_progress:
      return finish(in_progress_answer({left_for_}, reserve_.id));
    case State::pending:
      return finish(pending_answer(reserve_.id, State::pending, settings_.look_again));
    case State::failed_retryable:
      return finish(released_answer(reserve_.id, store_retry_hint));
    case State::unknown:
      return finish(unknown_answer({}, reserve_.id));
    case State::expired:
      return finish(expired_answer(reserve_.id));
  }
  return finish(unknown_answer({}, reserve_.id));
}

ExchangeAction Exchange::retry_later() {
  const Millis delay = delay_;
  delay_ = std::min(delay_ * 2, settings_.settle_retry_max);
  return AskLater{delay};
}

ExchangeAction Exchange::on_deadline() {
  if (phase_ == Phase::reserving) {
    // The request may be stored and may run; a retry with the same key finds it.
    if (reserve_in_doubt_ && to_store_) return finish(accept_in_doubt_answer(store_retry_hint));
    if (!reserve_in_doubt_ || goes_on()) return finish(store_unavailable_answer(store_retry_hint));
    // The reservation may exist. It was never dispatched, so its token releases it.
    settling_ = Release{reserve_.id,
                        {std::nullopt, reserve_.token},
                        ReleaseBasis::proven,
                        "reserve_in_doubt",
                        Millis{}};
    phase_ = Phase::owing;
    return AnswerClient{store_unavailable_answer(store_retry_hint)};
  }
  if (settling_) {
    phase_ = Phase::owing;
    return AnswerClient{
        outcome_unknown(504, "The work ended, and Idem could not store how in time.")};
  }
  return finish(outcome_unknown(504, "Idem could not read the record of this operation in time."));
}

ExchangeAction Exchange::finish_damaged(const StoreError& error) {
  reserve_.id = error.record.value_or(reserve_.id);
  return finish(record_damaged_answer(reserve_.id));
}

ExchangeAction Exchange::finish(WireAnswer answer) {
  phase_ = Phase::done;
  settling_.reset();
  return AnswerClient{std::move(answer)};
}

std::optional<Renew> Exchange::heartbeat(MonotonicTime now) {
  const bool running = phase_ == Phase::marking || phase_ == Phase::connecting ||
                       phase_ == Phase::sending || phase_ == Phase::settling;
  if (!running || now < renew_at_) return std::nullopt;
  renew_at_ = now + settings_.renew_interval;
  return Renew{reserve_.id, attempt_, reserve_.lease};
}

void Exchange::renewed(const std::expected<OwnerReply, StoreError>& result,
                       MonotonicTime asked_at) {
  if (result && result->verdict == Verdict::done) lease_end_ = asked_at + reserve_.lease;
}

}  // namespace idem
