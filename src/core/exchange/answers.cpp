#include "core/exchange/answers.hpp"

#include "core/exchange/policy.hpp"

#include <algorithm>
#include <string>

namespace idem {
namespace {

constexpr std::string_view our_fields =
    "Idempotent-Replayed, Idempotency-Expires, Idempotency-Outcome";

void expose_our_fields(std::vector<Field>& headers) {
  for (auto& field : headers) {
    if (!equal_names(field.name, "Access-Control-Expose-Headers")) continue;
    field.value += field.value.empty() ? "" : ", ";
    field.value += our_fields;
    return;
  }
}

WireAnswer not_stored_answer(const Replay& replay, const RecordId& id) {
  WireAnswer answer = to_answer({.code = ProblemCode::response_not_stored,
                                 .detail = "The operation ran once and completed with status " +
                                           std::to_string(replay.response.status) +
                                           ". Idem did not keep the body: it is too large or a "
                                           "stream, or this operation keeps none, or an "
                                           "operator shredded it.",
                                 .operation = id,
                                 .state = State::completed,
                                 .original_status = replay.response.status});
  for (const auto& field : replay.response.headers) {
    if (equal_names(field.name, "Location")) answer.headers.push_back(field);
  }
  return answer;
}

WireAnswer problem(ProblemCode code, std::string detail, const RecordId& id,
                   std::optional<State> state, std::optional<Millis> retry_after = {},
                   std::optional<RetryAdvice> retry = {}) {
  return to_answer({.code = code,
                    .detail = std::move(detail),
                    .retry = retry,
                    .operation = id,
                    .state = state,
                    .retry_after = retry_after});
}

/// The timeout is the one answer of Idem that is stored. No upstream writes the record's handle.
void recognize_ours(WireAnswer& answer, const RecordId& id) {
  if (answer.status != 408) return;
  WireAnswer ours = timed_out_answer(id);
  if (answer.body_bytes() == ours.body) answer.problem = std::move(ours.problem);
}

}  // namespace

std::string imf_fixdate(StoreTime time) {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  std::string text = "Www, dd Mmm yyyy hh:mm:ss GMT";
  const auto put = [&text](std::size_t at, std::size_t digits, auto number) {
    for (auto rest = static_cast<unsigned>(number); digits-- > 0; rest /= 10) {
      text[at + digits] = static_cast<char>('0' + rest % 10);
    }
  };
  text.replace(0, 3, days[std::chrono::weekday(day).c_encoding()]);
  put(5, 2, static_cast<unsigned>(date.day()));
  text.replace(8, 3, months[static_cast<unsigned>(date.month()) - 1]);
  put(12, 4, static_cast<int>(date.year()));
  put(17, 2, clock.hours().count());
  put(20, 2, clock.minutes().count());
  put(23, 2, clock.seconds().count());
  return text;
}

StoredResponse stored_head(const WireAnswer& answer, bool body_is_stored,
                           std::span<const std::string> replay_fields, const std::string& trace) {
  StoredResponse stored;
  stored.status = answer.status;
  stored.body_stored = body_is_stored;
  stored.headers = answer.headers;
  keep_storable(stored.headers, replay_fields);
  if (!trace.empty()) stored.headers.push_back({std::string(trace_field), trace});
  return stored;
}

bool lies_beside(std::string_view stored_field) noexcept {
  return stored_field == trace_field || stored_field == rpc_field;
}

std::string take_trace(std::vector<Field>& stored) {
  const auto found = std::ranges::find(stored, trace_field, &Field::name);
  if (found == stored.end()) return {};
  std::string trace = std::move(found->value);
  stored.erase(found);
  return trace;
}

void mark_outcome(WireAnswer& answer, std::string_view outcome,
                  std::optional<StoreTime> expires_at) {
  expose_our_fields(answer.headers);
  answer.headers.push_back({"Idempotency-Outcome", std::string(outcome)});
  if (expires_at) answer.headers.push_back({"Idempotency-Expires", imf_fixdate(*expires_at)});
}

WireAnswer replay_answer(Replay replay, const RecordId& id) {
  std::string ran_in = take_trace(replay.response.headers);
  const bool answers_rpc = std::erase_if(replay.response.headers, [](const Field& field) {
                             return field.name == rpc_field;
                           }) != 0;
  if (!replay.response.body_stored) {
    WireAnswer answer = not_stored_answer(replay, id);
    answer.ran_in = std::move(ran_in);
    return answer;
  }
  WireAnswer answer{replay.response.status, std::move(replay.response.headers),
                    std::move(replay.response.body)};
  answer.ran_in = std::move(ran_in);
  answer.answers_rpc = answers_rpc;
  // A service that completed its own record (§17) stored only the fields that it named. Without
  // this each replay would carry the date of its sending, and retries would differ.
  const bool dated =
      std::any_of(answer.headers.begin(), answer.headers.end(),
                  [](const Field& field) { return equal_names(field.name, "Date"); });
  if (!dated) answer.headers.push_back({"Date", imf_fixdate(replay.completed_at)});
  answer.headers.push_back({"Idempotent-Replayed", "true"});
  mark_outcome(answer, "stored", replay.expires_at);
  recognize_ours(answer, id);
  return answer;
}

WireAnswer replay_answer(const std::shared_ptr<const Record>& record) {
  const StoredResponse& stored = *record->response;
  const auto expires = record->expires_at.value_or(StoreTime{});
  WireAnswer answer = replay_answer({{stored.status, stored.headers, {}, stored.body_stored},
                                     record->completed_at.value_or(expires),
                                     expires},
                                    record->id);
  if (stored.body_stored) {
    answer.shared_body = std::shared_ptr<const std::string>(record, &stored.body);
    recognize_ours(answer, record->id);
  }
  return answer;
}

WireAnswer in_progress_answer(const InProgress& outcome, const RecordId& id) {
  return problem(ProblemCode::in_progress,
                 "The first request with this key has not ended yet. Ask again with the same key.",
                 id, State::in_progress, outcome.lease_remaining);
}

std::string_view why_maybe_the_same(const Fingerprint& asked) noexcept {
  if (body_kind(asked) == BodyKind::unread) {
    return "This request has other bytes than the first one with its key, and Idem cannot compare "
           "the values of its body, which is encoded (Content-Encoding), or in a format that Idem "
           "does not read: so it may be the same request.";
  }
  return "This request has other bytes than the first one with its key, and may be the same "
         "request: that one's body was encoded (Content-Encoding) or in a format that Idem does "
         "not read, or the values differ only in their spelling or in digits that a double does "
         "not hold (RFC 8785), or other rules of what counts were in force.";
}

WireAnswer misuse_answer(const KeyMisuse& misuse, const Fingerprint& asked, Preset preset) {
  Problem reused{.code = ProblemCode::key_reused,
                 .detail =
                     "This key was first used for a request with other content. Nothing was "
                     "run now; use a new key for a new operation.",
                 .operation = misuse.id};
  if (!misuse.is_other) {
    reused.detail = why_maybe_the_same(asked);
    reused.detail += " Nothing was run now; a new key might do the work again.";
    reused.retry = RetryAdvice::never;
  }
  if (preset == Preset::stripe) reused.status = 400;
  return to_answer(reused);
}

WireAnswer expired_answer(const RecordId& id) {
  return problem(
      ProblemCode::key_expired,
      "The operation completed under this key; Idem no longer keeps its answer, and does not "
      "run it again.",
      id, State::expired);
}

std::string operation_path(const RecordId& id) { return "/.idem/operations/" + to_hex(id.bytes); }

std::string retry_after_text(Millis time) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time);
  return std::to_string(std::max<std::int64_t>(1, seconds.count()));
}

WireAnswer pending_answer(const RecordId& id, State state, Millis retry_after) {
  const std::string path = operation_path(id);
  WireAnswer answer{202, {}, {}};
  answer.headers.push_back({"Location", path});
  answer.headers.push_back({"Retry-After", retry_after_text(retry_after)});
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "no-store"});
  answer.body = R"({"operation_ref":")" + to_hex(id.bytes) + R"(","state":")";
  answer.body += name_of(state);
  answer.body += R"(","status":")" + path + "\"}\n";
  return answer;
}

WireAnswer unknown_answer(std::optional<Millis> reconcile_in, const RecordId& id) {
  return problem(
      ProblemCode::outcome_unknown,
      "An earlier attempt was sent, and no answer shows how it ended. Idem does not run it "
      "again until evidence settles it. Do not use a new key: the work may be done already.",
      id, State::unknown, reconcile_in, reconcile_in ? RetryAdvice::later : RetryAdvice::never);
}

WireAnswer first_unknown_answer(int status, std::string detail, std::optional<Millis> reconcile_in,
                                const RecordId& id) {
  detail += " It may have run: never use a new key. ";
  detail += reconcile_in ? "Send the same request with the same key after the time in Retry-After "
                           "to learn the outcome."
                         : "No retry settles the outcome; an operator's decision or an event of "
                           "the provider's does. Then the same request with the same key gets the "
                           "answer.";
  return to_answer({.code = ProblemCode::outcome_unknown,
                    .detail = std::move(detail),
                    .status = status,
                    .retry = reconcile_in ? RetryAdvice::later : RetryAdvice::never,
                    .operation = id,
                    .state = State::unknown,
                    .retry_after = reconcile_in});
}

WireAnswer released_answer(const RecordId& id, Millis retry_after, bool is_gone) {
  return problem(
      ProblemCode::attempt_released,
      "The attempt that had this key ended without executing the work. This request did not run; "
      "send it again with the same key.",
      id, is_gone ? std::nullopt : std::optional(State::failed_retryable), retry_after);
}

WireAnswer timed_out_answer(const RecordId& id) {
  return to_answer({.code = ProblemCode::request_timeout,
                    .detail = "The stored request expired before it could be run.",
                    .operation = id,
                    .state = State::completed});
}

WireAnswer store_unavailable_answer(Millis retry_after) {
  return to_answer(
      {.code = ProblemCode::store_unavailable,
       .detail =
           "Idem cannot reach its store, so this request did not run. Send it again with the same "
           "key.",
       .retry_after = retry_after});
}

WireAnswer record_damaged_answer(const RecordId& id) {
  return to_answer({.code = ProblemCode::record_damaged,
                    .detail = "The record of this key is damaged, so Idem cannot tell whether the "
                              "operation ran. Nothing was run now; a new key might do the work "
                              "again. An operator has to look at the record.",
                    .operation = id});
}

WireAnswer request_not_storable_answer() {
  return to_answer(
      {.code = ProblemCode::request_not_storable,
       .detail =
           "Idem's store cannot hold a part of this request, so nothing was run for it now, "
           "nor will be when it is sent again. An earlier request with this key may have run: "
           "use no new key. An operator finds the reason in Idem's log."});
}

WireAnswer store_error_answer(const StoreError& error, Millis retry_after) {
  switch (error.code) {
    case StoreError::Code::damaged:
      if (error.record) return record_damaged_answer(*error.record);
      break;
    case StoreError::Code::unstorable:
      return request_not_storable_answer();
    case StoreError::Code::unavailable:
    case StoreError::Code::in_doubt:
    case StoreError::Code::refused:
      break;
  }
  return store_unavailable_answer(retry_after);
}

WireAnswer overloaded_answer(std::string detail) {
  return to_answer({.code = ProblemCode::overloaded,
                    .detail = std::move(detail) + " Ask again with the same key.",
                    .retry_after = Millis(1000)});
}

WireAnswer accept_in_doubt_answer(Millis retry_after) {
  return to_answer(
      {.code = ProblemCode::store_unavailable,
       .detail = "Idem may have stored the request. Send it again with the same key: it runs once.",
       .retry_after = retry_after});
}

}  // namespace idem
