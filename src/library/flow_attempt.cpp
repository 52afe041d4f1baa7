#include "library/flow_attempt.hpp"

#include "library/flow_input.hpp"
#include "library/foreign_calls.hpp"
#include "library/misuse.hpp"
#include "library/own_values.hpp"
#include "store/internal_sql.hpp"

#include <idem/assert.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>

namespace idem::library {
namespace {

using How = TransactionEnd::How;

constexpr std::string_view started = "started";

}  // namespace

std::optional<FlowState> open_flow(Transaction& transaction, const std::string& operation,
                                   const std::string& input, Millis lease, const Attempt& attempt,
                                   const Phase& first) {
  const auto asked_at = MonotonicClock::now();
  const RecordId& id = transaction.record_id();
  const std::string& record_point = transaction.recovery_point();
  const SqlRows rows =
      InternalSql::run(transaction, InternalStatement::open_flow,
                       {to_hex(id.bytes), operation, SqlBytes{sealed_input(id, input)},
                        std::int64_t{lease.count()}, to_hex(attempt.token.bytes),
                        std::int64_t{notes_calls(first) ? 1 : 0}, first.name, record_point});
  if (rows.size() != 1 || rows[0].size() != 6) return std::nullopt;
  const SqlRow& row = rows[0];
  const auto* const kept = std::get_if<SqlBytes>(&row[5]);
  auto request = kept != nullptr ? unpack_input(id, kept->bytes) : std::nullopt;
  FlowState state;
  state.is_unreadable = !request;
  if (request) state.input = std::move(*request);
  state.point = text_of(row[0]);
  state.point_since = asked_at - Millis(number_of(row[1]));
  state.attempts = static_cast<int>(number_of(row[2]));
  if (!is_null(row[3]))
    state.no_call_in_flight_since = MonotonicClock::now() - Millis(number_of(row[3]));
  state.next = text_of(row[4]);
  state.is_torn = state.point != (record_point.empty() ? started : record_point);
  return state;
}

bool notes_calls(const Phase& phase) {
  return !phase.call.send || needs_notes(phase.call.repetition);
}

ExchangeEvent FlowAttempt::run(FlowState state) {
  state_ = std::move(state);
  if (state_.is_unreadable) {
    log(LogLevel::error, "work_unreadable", state_.point, "the stored request cannot be read");
    return give_up("work_unreadable");
  }
  if (state_.is_torn) return give_up("work_torn");
  const auto first = next_phase();
  if (!first) return give_up("unknown_recovery_point");
  // A call that may have been made under another name would be repeated under another key.
  if (state_.no_call_in_flight_since && !state_.next.empty() &&
      state_.next != phases_[*first].name) {
    return give_up("phases_changed");
  }
  // An operator released the record, and the stored progress is new: an earlier call, and its
  // moment, are not known.
  const bool may_call = std::ranges::any_of(
      phases_.subspan(*first), [](const Phase& phase) { return phase.call.send != nullptr; });
  if (state_.no_call_in_flight_since && state_.next.empty() && may_call) {
    return give_up("call_outcome_unknown");
  }
  if (state_.attempts > attempts_max_) return give_up("attempts_exhausted");
  for (std::size_t index = *first; index < phases_.size(); ++index) {
    const Phase& phase = phases_[index];
    CallAnswered called;
    if (phase.call.send) {
      if (auto stop = call(phase, called)) return std::move(*stop);
    }
    if (auto stop = commit(index, called)) return std::move(*stop);
  }
  return leave("the last phase had committed");
}

std::string FlowAttempt::name_after(std::size_t index) const {
  return index + 1 < phases_.size() ? phases_[index + 1].name : std::string();
}

bool FlowAttempt::is_noted_after(std::size_t index) const {
  return index + 1 == phases_.size() || notes_calls(phases_[index + 1]);
}

std::optional<std::size_t> FlowAttempt::next_phase() const {
  if (state_.point == started) return 0;
  for (std::size_t index = 0; index + 1 < phases_.size(); ++index) {
    if (phases_[index].name == state_.point) return index + 1;
  }
  return std::nullopt;
}

// ---- the foreign call ----

CallHistory FlowAttempt::history() const {
  const auto now = MonotonicClock::now();
  CallHistory known{.first_ago = now - state_.point_since};
  if (state_.no_call_in_flight_since) known.quiet_for = now - *state_.no_call_in_flight_since;
  return known;
}

bool FlowAttempt::covers(Millis timeout) const {
  return serving_.lease_left() > timeout + call_margin(rules_.options().lease);
}

FlowAttempt::Stop FlowAttempt::call(const Phase& phase, CallAnswered& called) {
  const Declared declared = declared_by(phase.call.repetition, phase.call.timeout);
  const PhaseCall call{state_.input, id_, derived_key(id_, phase.name), phase.call.timeout};
  tries_ = 0;
  for (;;) {
    const Next next = next_step(history(), declared);
    std::optional<Stop> done;
    switch (next.step) {
      case NextStep::give_up:
        return give_up("call_outcome_unknown");
      case NextStep::wait:
        if (next.wait > limits::lookup_wait_max) return leave("it is too early to look it up");
        serving_.sleep(next.wait);
        continue;
      case NextStep::look_up:
        done = look_up(phase, call, called);
        break;
      case NextStep::send:
        done = send(phase, call, called);
        break;
    }
    if (done) return std::move(*done);
  }
}

std::optional<FlowAttempt::Stop> FlowAttempt::look_up(const Phase& phase, const PhaseCall& call,
                                                      CallAnswered& called) {
  LookedUp seen = library::look_up(phase.call.repetition, call);
  if (auto* const answered = std::get_if<CallAnswered>(&seen)) {
    log(LogLevel::info, "call_found", phase.name, answered->reference);
    called = std::move(*answered);
    return Stop{};
  }
  if (const auto* const unseen = std::get_if<CannotTell>(&seen)) {
    log(LogLevel::warning, "lookup_failed", phase.name, unseen->why);
    if (!pause(Millis{})) return leave("the lookup cannot tell");
    return std::nullopt;
  }
  log(LogLevel::info, "call_not_found", phase.name, {});
  return send(phase, call, called);
}

std::optional<FlowAttempt::Stop> FlowAttempt::send(const Phase& phase, const PhaseCall& call,
                                                   CallAnswered& called) {
  if (!covers(phase.call.timeout)) {
    if (!state_.no_call_in_flight_since) rest({});
    return leave("the lease does not cover the call");
  }
  if (state_.no_call_in_flight_since || notes_calls(phase) || state_.next != phase.name) {
    // From here on the call may be on its way, and the next attempt must know that.
    const auto noted =
        InternalSql::run(transactions(), InternalStatement::note_call,
                         {to_hex(id_.bytes), to_hex(attempt_.token.bytes), phase.name});
    if (!noted || noted->empty()) return leave("the call could not be noted");
    state_.next = phase.name;
    if (!covers(phase.call.timeout)) return leave("the lease does not cover the call");
  }
  return after_call(send_once(phase.call.send, call, "the call"), phase, called);
}

std::optional<FlowAttempt::Stop> FlowAttempt::after_call(CallEnd end, const Phase& phase,
                                                         CallAnswered& called) {
  if (auto* const answered = std::get_if<CallAnswered>(&end)) {
    called = std::move(*answered);
    return Stop{};
  }
  if (const auto* const not_done = std::get_if<CallNotDone>(&end)) {
    log(LogLevel::warning, "call_not_done", phase.name, not_done->why);
    if (not_done->is_final && !state_.no_call_in_flight_since) return give_up("call_refused");
    if (pause(not_done->retry_in)) return std::nullopt;
    if (!state_.no_call_in_flight_since) rest(not_done->retry_in);
    return leave("the call does not go through");
  }
  const auto& ambiguous = std::get<CallAmbiguous>(end);
  log(LogLevel::warning, "call_ambiguous", phase.name, ambiguous.why);
  state_.no_call_in_flight_since = MonotonicClock::now();
  if (pause(ambiguous.retry_in)) return std::nullopt;
  return leave("the call may have been done");
}

bool FlowAttempt::pause(Millis at_least) {
  if (++tries_ >= limits::call_tries_max || at_least > limits::call_retry_max) return false;
  const Millis doubled = Millis(limits::call_retry_first) * (1 << std::min(tries_ - 1, 8));
  serving_.sleep(std::max(at_least, std::min(doubled, Millis(limits::call_retry_max))));
  return true;
}

// ---- the transaction ----

FlowAttempt::Stop FlowAttempt::commit(std::size_t index, const CallAnswered& called) {
  tries_ = 0;
  bool was_in_doubt = false;
  for (;;) {
    Found found;
    answer_.reset();
    const auto before = MonotonicClock::now();
    TransactionEnd end;
    try {
      end = try_commit(index, called, found);
    } catch (...) {
      log(LogLevel::error, "phase_threw", phases_[index].name,
          found.thrown.empty() ? thrown_by("the store") : found.thrown);
      return failed(index, was_in_doubt);
    }
    // A late attempt of the same request must not end it (T14): the record has the answer by now.
    if (end.how == How::superseded) return WorkLeft{};
    if (end.rows_may_be_committed) return ExchangeEvent(WorkUnknown{"work_ended_transaction", {}});
    if (end.how == How::committed && answer_) {
      return ExchangeEvent(WorkCommitted{to_answer(std::move(*answer_)), end.reply});
    }
    if (found.is_lost) return give_up("work_lost");
    if (end.how == How::committed || found.was_passed) {
      state_.point = phases_[index].name;
      state_.next = name_after(index);
      state_.point_since = before;
      state_.no_call_in_flight_since.reset();
      return std::nullopt;
    }
    log(LogLevel::warning, "phase_failed", phases_[index].name, end.why);
    // In doubt: if it was committed, the next try finds the phase passed.
    was_in_doubt |= end.how == How::in_doubt;
    const bool may_pass = end.how == How::unavailable || end.how == How::in_doubt;
    if (!may_pass || !pause(Millis{})) return failed(index, was_in_doubt);
  }
}

TransactionEnd FlowAttempt::try_commit(std::size_t index, const CallAnswered& called,
                                       Found& found) {
  const Phase& phase = phases_[index];
  InTransaction what;
  what.id = id_;
  what.attempt = attempt_;
  what.work = [&](Transaction& transaction, const RecordId& id,
                  const Attempt& attempt) -> std::optional<StoreCall> {
    // It may have run before.
    answer_.reset();
    found = {};
    const SqlRows passed = InternalSql::run(
        transaction, InternalStatement::pass_phase,
        {to_hex(id.bytes), state_.point, phase.name, std::int64_t{rules_.options().lease.count()},
         std::int64_t{is_noted_after(index) ? 1 : 0}, name_after(index)});
    if (transaction.failed()) return std::nullopt;
    if (passed.empty()) {
      const SqlRows at =
          InternalSql::run(transaction, InternalStatement::find_point, {to_hex(id.bytes)});
      if (transaction.failed()) return std::nullopt;
      found.was_passed = !at.empty() && text_of(at[0].at(0)) == phase.name;
      found.is_lost = !found.was_passed;
      return std::nullopt;
    }
    PhaseEnd end = NextPhase{};
    try {
      const InWork now;
      end = phase.work({state_.input, id, called}, transaction);
    } catch (...) {
      found.thrown = thrown_by("the phase", transaction.failure());
      throw;
    }
    auto* const response = std::get_if<Response>(&end);
    if (response == nullptr && index + 1 == phases_.size()) {
      transaction.fail("the last phase must answer: return a Response from \"" + phase.name + "\"");
      return std::nullopt;
    }
    if (response == nullptr) return Advance{id, attempt, phase.name};
    if (auto why = what_is_wrong(*response); !why.empty()) {
      transaction.fail(std::move(why));
      return std::nullopt;
    }
    InternalSql::run(transaction, InternalStatement::close_flow,
                     {to_hex(id.bytes), to_hex(attempt.token.bytes)});
    answer_ = std::move(*response);
    return rules_.complete_with(*answer_, id, attempt);
  };
  return transactions().run(std::move(what));
}

// This phase wrote nothing. If no phase committed and none was called, a retry may run at once;
// otherwise another attempt continues the work.
FlowAttempt::Stop FlowAttempt::failed(std::size_t index, bool was_in_doubt) {
  if (state_.point == started && !phases_[index].call.send && !was_in_doubt) {
    UpstreamAnswered answered{};
    answered.answer = to_answer(work_failed(id_));
    answered.declared = DeclaredOutcome::not_executed;
    return ExchangeEvent(std::move(answered));
  }
  return leave("the phase failed");
}

// ---- how an attempt ends early ----

void FlowAttempt::rest(Millis retry_in) {
  const Millis delay =
      std::max(serving_.lease_left(), std::min(retry_in, Millis(limits::retry_after_max)));
  const auto rested = InternalSql::run(transactions(), InternalStatement::rest_flow,
                                       {to_hex(id_.bytes), to_hex(attempt_.token.bytes),
                                        std::int64_t{delay.count()}, std::int64_t{0}});
  // Not stored: the next attempt regards the call as open, which is safe.
  if (!rested) log(LogLevel::warning, "rest_failed", {}, rested.error());
}

ExchangeEvent FlowAttempt::leave(std::string_view why) {
  log(LogLevel::warning, "attempt_left", state_.point, std::string(why));
  return WorkLeft{};
}

ExchangeEvent FlowAttempt::give_up(std::string code, std::string reference) {
  log(LogLevel::error, "outcome_unknown", state_.point, code);
  InTransaction what;
  what.id = id_;
  what.attempt = attempt_;
  what.work = [&](Transaction& transaction, const RecordId& id,
                  const Attempt& attempt) -> std::optional<StoreCall> {
    // Another attempt follows only after negative evidence.
    InternalSql::run(
        transaction, InternalStatement::rest_flow,
        {to_hex(id.bytes), to_hex(attempt.token.bytes),
         std::int64_t{Millis(limits::flow_unknown_interval).count()}, std::int64_t{1}});
    return MarkUnknown{id, attempt, code, {}, reference};
  };
  const TransactionEnd end = transactions().run(std::move(what));
  if (end.how != How::committed) log(LogLevel::warning, "store_error", state_.point, end.why);
  return WorkUnknown{std::move(code), std::move(reference)};
}

void FlowAttempt::log(LogLevel level, std::string_view event, std::string_view phase,
                      std::string why) const {
  rules_.parts().options.log(level, event,
                             {{"operation_ref", to_hex(id_.bytes)},
                              {"phase", std::string(phase)},
                              {"why", std::move(why)}});
}

}  // namespace idem::library
