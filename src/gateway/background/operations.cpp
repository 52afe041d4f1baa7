#include "gateway/background/operations.hpp"

#include "core/bytes/hex.hpp"
#include "core/bytes/json_string.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/exchange/answers.hpp"
#include "core/exchange/preferences.hpp"
#include "core/naming/shadow_names.hpp"
#include "gateway/background/dispatcher.hpp"
#include "gateway/keyed/answers_under_way.hpp"
#include "gateway/keyed/lookup_limit.hpp"
#include "gateway/keyed/waiters.hpp"
#include "loop/store_link.hpp"

namespace idem::gateway {
namespace {

constexpr std::string_view root = "/.idem/operations/";
constexpr std::string_view response_part = "/response";

struct Target {
  std::optional<RecordId> id;  ///< None: the path names no record.
  bool response = false;
};

Target target_of(const http::RequestHead& head) {
  auto path = http::path_of(head.origin_form);
  path.remove_prefix(root.size());
  const bool response = path.ends_with(response_part);
  if (response) path.remove_suffix(response_part.size());
  return {parse_handle(path), response};
}

bool goes_on(State state) noexcept {
  return state == State::pending || state == State::in_progress;
}

/// The same for a record that does not exist, one of another scope and a malformed reference.
WireAnswer no_such_operation() {
  return to_answer({.code = ProblemCode::not_found,
                    .detail = "Your scope has no operation under this reference."});
}

void add_text(std::string& json, std::string_view name, std::string_view value) {
  json += json.size() > 1 ? ",\"" : "\"";
  json += name;
  json += "\":";
  append_json_string(json, value);
}

WireAnswer status_of(const Record& record, Millis look_again) {
  const std::string path = operation_path(record.id);
  std::string json = "{";
  add_text(json, "operation_ref", to_hex(record.id.bytes));
  add_text(json, "operation", record.operation);
  add_text(json, "state", name_of(record.state));
  add_text(json, "created_at", to_rfc3339(record.created_at));
  if (record.state == State::completed && record.completed_at) {
    add_text(json, "completed_at", to_rfc3339(*record.completed_at));
  }
  if (record.state != State::in_progress && record.state != State::unknown && record.expires_at) {
    add_text(json, "expires_at", to_rfc3339(*record.expires_at));
  }
  // Evidence says that it ran: "unknown" alone would read as if nobody knew anything.
  if (record.is_contested) json += ",\"contested\":true";
  if (record.state == State::completed && record.response) {
    json += ",\"response_status\":" + std::to_string(record.response->status);
    add_text(json, "response", path + std::string(response_part));
  }
  json += "}\n";
  WireAnswer answer{200, {}, std::move(json)};
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "no-store"});
  const bool comes_later =
      goes_on(record.state) || (record.state == State::unknown && record.reconcile_after);
  if (comes_later) answer.headers.push_back({"Retry-After", retry_after_text(look_again)});
  return answer;
}

WireAnswer response_of(const std::shared_ptr<const Record>& record, Millis look_again) {
  switch (record->state) {
    case State::completed:
      return replay_answer(record);
    case State::pending:
    case State::in_progress:
      return pending_answer(record->id, record->state, look_again);
    case State::unknown: {
      std::optional<Millis> later;
      if (record->reconcile_after) later = look_again;
      return unknown_answer(later, record->id);
    }
    case State::failed_retryable:
      return released_answer(record->id, look_again);
    case State::expired:
      break;
  }
  return expired_answer(record->id);
}

class Lookup {
 public:
  Lookup(http::ServerStream& client, GatewayShared& shared, Authority& authority,
         const GatewaySettings& settings)
      : client_(client), shared_(shared), authority_(authority), settings_(settings) {}

  Task<WireAnswer> run() {
    auto refusal = co_await authority_.check();
    if (refusal) co_return std::move(*refusal);
    const auto rest = shared_.lookups->take(authority_.scope(), MonotonicClock::now());
    if (rest) {
      co_return to_answer({.code = ProblemCode::quota_exceeded,
                           .detail = "This caller looks up operations too often. Ask again after "
                                     "the time in Retry-After.",
                           .retry_after = *rest});
    }
    const Target target = target_of(client_.head());
    if (!target.id) co_return no_such_operation();
    auto found = co_await find(*target.id);
    if (!found) co_return store_error_answer(found.error(), Millis(1000));
    std::shared_ptr<const Record> record = std::move(*found);
    if (!record || record->scope != authority_.scope()) co_return no_such_operation();
    // A client never saw the reference of one that a shadow route made.
    if (is_shadow_operation(record->operation)) co_return no_such_operation();
    const WaitRule wait = wait_rule();
    if (wait.time > Millis(0) && goes_on(record->state)) {
      record = co_await wait_for_end(std::move(record), MonotonicClock::now() + wait.time);
      refusal = co_await authority_.check_again();
      if (refusal) co_return std::move(*refusal);
    }
    const Millis look_again = shared_.dispatcher->look_again();
    WireAnswer answer =
        target.response ? response_of(record, look_again) : status_of(*record, look_again);
    if (!shared_.answers->admit(record->id, bounded_scope(settings_.scope, authority_.scope()),
                                answer)) {
      co_return overloaded_answer(
          "Too many stored answers are on their way to this caller already.");
    }
    if (wait.applied) {
      answer.headers.push_back(
          {"Preference-Applied", "wait=" + std::to_string(wait.applied->count())});
    }
    co_return answer;
  }

 private:
  using Found = std::expected<std::shared_ptr<const Record>, StoreError>;

  Task<Found> find(const RecordId& id) {
    StoreCall call = Find{id};
    auto asking = ask_store(client_.loop(), shared_.store, call);
    auto result = co_await asking;
    if (!result) co_return std::unexpected(std::move(result.error()));
    auto& record = std::get<std::optional<Record>>(*result);
    if (!record) co_return std::shared_ptr<const Record>();
    drop_request(*record);
    co_return std::make_shared<const Record>(std::move(*record));
  }

  /// As for a keyed request, within what the last route, the defaults', allows.
  WaitRule wait_rule() const {
    PreferredWait preferred;
    for (const auto& field : client_.head().fields) {
      if (http::same_name(field.name, "Prefer")) preferred.read(field.value);
    }
    return idem::wait_rule(Millis(0), settings_.routes.all().back().wait_max, preferred.value());
  }

  Task<std::shared_ptr<const Record>> wait_for_end(std::shared_ptr<const Record> record,
                                                   MonotonicTime until) {
    Waiter waiter(shared_.waiters, client_, record->id,
                  bounded_scope(settings_.scope, authority_.scope()));
    for (;;) {
      auto event = co_await waiter.wait(until);
      const auto* woken = std::get_if<Woken>(&event);
      // The record that was read last is still the answer.
      if (woken == nullptr || !woken->record || !*woken->record) co_return record;
      record = *woken->record;
      if (!goes_on(record->state)) co_return record;
    }
  }

  http::ServerStream& client_;
  GatewayShared& shared_;
  Authority& authority_;
  const GatewaySettings& settings_;
};

}  // namespace

bool is_operation_path(std::string_view path) { return path.starts_with(root); }

Task<void> serve_operation(http::ServerStream& client, GatewayShared& shared, Authority& authority,
                           const GatewaySettings& settings) {
  Lookup lookup(client, shared, authority, settings);
  const WireAnswer answer = co_await lookup.run();
  co_await client.answer(answer);
}

}  // namespace idem::gateway
