#include "gateway/background/events.hpp"

#include "core/evidence/event_source.hpp"
#include "core/record/stored_fence.hpp"
#include "gateway/background/early_events.hpp"
#include "gateway/background/search_index.hpp"
#include "gateway/keyed/sealing.hpp"
#include "loop/store_link.hpp"

#include <idem/crash_point.hpp>
#include <idem/foreign_call.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <ctime>

namespace idem::gateway {
namespace {

using Verdict = Resolve::Verdict;
using namespace std::chrono_literals;

WireAnswer event_answer(int status, std::string_view outcome) {
  WireAnswer answer{status, {}, {}};
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "no-store"});
  answer.body = "{\"event\":\"" + std::string(outcome) + "\"}\n";
  return answer;
}

std::string_view field(const http::RequestHead& head, std::string_view name) {
  for (const auto& one : head.fields) {
    if (http::same_name(one.name, name)) return one.value;
  }
  return {};
}

SignedHead signed_head(const http::RequestHead& head, const EventSignature& by) {
  if (by.scheme == EventSignature::Scheme::standard) {
    return {field(head, "webhook-id"), field(head, "webhook-timestamp"),
            field(head, "webhook-signature")};
  }
  return {{}, {}, field(head, by.field)};
}

std::shared_ptr<const EventSource> source_of(const http::RequestHead& head,
                                             const GatewaySettings& settings) {
  auto path = http::path_of(head.origin_form);
  path.remove_prefix(events_path.size());
  const auto found = settings.event_sources.find(path);
  return found != settings.event_sources.end() ? found->second : nullptr;
}

void log_rejected(Observer& observer, std::string_view event, const EventSource& source,
                  const SignedHead& head, const std::string& detail) {
  observer.log(LogLevel::warning, event,
               {{"provider", source.name},
                {"event_id", std::string(head.id.substr(0, limits::event_id_bytes_max))},
                {"detail", detail}});
}

/// Handles one verified event: finds its record and settles it.
class EventHandler {
 public:
  EventHandler(Loop& loop, GatewayShared& shared, Observer& observer, const EventSource& source,
               const GatewaySettings& settings, std::string_view body)
      : loop_(loop),
        shared_(shared),
        observer_(observer),
        source_(source),
        settings_(settings),
        body_(body) {}

  Task<WireAnswer> run(ProviderEvent event) {
    event_ = std::move(event);
    if (!is_positive(event_.finding)) co_return event_answer(200, "ignored");
    auto finding = find_record();
    const bool reached = co_await finding;
    if (!reached) co_return unavailable();
    if (named_.size() > 1) {
      auto holding = hold_all();
      auto held = co_await holding;
      co_return held;
    }
    if (!id_ && may_come_in_) co_return come_again(*may_come_in_);
    if (!id_) {
      log(LogLevel::warning, "event_without_record", {});
      co_return event_answer(200, "no_record");
    }
    auto settling = settle();
    auto answer = co_await settling;
    co_return answer;
  }

 private:
  Task<StoreResult> ask(StoreCall call) {
    auto asking = idem::ask_store(loop_, shared_.search->indexed(), call);
    auto result = co_await asking;
    count_failure(observer_.shard(), result);
    co_return result;
  }

  // A record has its reference only once its answer has come; until then the provider keeps the
  // event.
  static WireAnswer come_again(Millis in) {
    WireAnswer answer = event_answer(503, "early");
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::max<Millis>(in, 1s));
    answer.headers.push_back({"Retry-After", std::to_string(seconds.count())});
    return answer;
  }

  static WireAnswer unavailable() {
    WireAnswer answer = event_answer(503, "store_unavailable");
    answer.headers.push_back({"Retry-After", "1"});
    return answer;
  }

  void log(LogLevel level, std::string_view event, std::string_view state) {
    observer_.log(level, event,
                  {{"provider", source_.name},
                   {"event_id", event_.id},
                   {"operation_ref", id_ ? to_hex(id_->bytes) : std::string()},
                   {"said", std::string(name_of(event_.finding))},
                   {"state", std::string(state)}});
  }

  // By the handle; otherwise among all records that an event can settle. False: not all of them
  // could be read.
  Task<bool> find_record() {
    id_ = event_.operation;
    const bool has_key = !event_.key.empty() || !event_.derived_key.empty();
    if (id_ || (!has_key && event_.reference.empty())) co_return true;
    // These first: an attempt that ends meanwhile is then found among the others.
    auto looking = has_key ? look_through(State::in_progress) : look_for_running();
    bool looked = co_await looking;
    // And once more: a released record may have begun to run again behind the first look.
    for (const State state : {State::unknown, State::failed_retryable, State::pending,
                              State::in_progress, State::unknown}) {
      if (!looked) co_return false;
      const bool is_again = state == State::in_progress;
      if (is_found() || (is_again && !named_.empty())) break;
      auto looking_further = look_through(state);
      looked = co_await looking_further;
    }
    if (named_.size() == 1) id_ = named_.front();
    // It may be a record whose reference is not known yet.
    if (!named_.empty() || !has_key || event_.reference.empty()) co_return looked;
    auto looking_at_running = look_for_running();
    const bool looked_at_running = co_await looking_at_running;
    co_return looked&& looked_at_running;
  }

  enum class Walk : std::uint8_t { stopped, all_seen, more, store_failed };

  // Shows `stops_at` the records of a state until it answers true. `more`: there are more records
  // than one event may read.
  template <class StopsAt>
  Task<Walk> walk(State state, const StopsAt& stops_at) {
    List page{.state = state, .limit = limits::list_page_max};
    for (std::size_t seen = 0; seen < limits::event_records_seen_max;
         seen += limits::list_page_max) {
      auto asking = ask(page);
      const auto listed = co_await asking;
      if (!listed) co_return Walk::store_failed;
      const auto& records = std::get<std::vector<Record>>(*listed);
      if (std::ranges::any_of(records, stops_at)) co_return Walk::stopped;
      if (records.size() < limits::list_page_max) co_return Walk::all_seen;
      page.after = records.back().id;
    }
    co_return Walk::more;
  }

  // False: there may be another record of the name that was not read; the provider sends the event
  // again.
  Task<bool> look_through(State state) {
    const auto note = [this](const Record& record) {
      if (!is_of_this_provider(record) || !is_named(record)) return false;
      if (std::ranges::find(named_, record.id) == named_.end()) named_.push_back(record.id);
      return is_found();
    };
    auto walking = walk(state, note);
    const Walk walked = co_await walking;
    co_return walked == Walk::stopped || walked == Walk::all_seen;
  }

  /// No other record can have the same derived key.
  bool is_found() const {
    return !named_.empty() && event_.key.empty() && event_.reference.empty();
  }

  bool is_named(const Record& record) const {
    if (!event_.key.empty() &&
        is_key_of(record, event_.key, shared_.store.identity(), settings_.key_scope)) {
      return true;
    }
    if (!event_.derived_key.empty() &&
        derived_key(record.id, source_.phase) == event_.derived_key) {
      return true;
    }
    return !event_.reference.empty() && record.upstream_reference == event_.reference;
  }

  // The event may be about an attempt that was under way when the provider first sent it.
  Task<bool> look_for_running() {
    auto counting = ask(Count{});
    const auto counted = co_await counting;
    if (!counted) co_return false;
    const StoreTime now = std::get<Census>(*counted).now;
    const StoreTime first = shared_.early_events->first_seen(source_.name + ' ' + event_.id, now);
    if (now - first > limits::early_event_max) co_return true;
    const auto may_be_it = [this, first, now](const Record& record) {
      if (record.created_at > first || !is_of_this_provider(record)) return false;
      may_come_in_ = record.locked_until - now;
      return true;
    };
    auto walking = walk(State::in_progress, may_be_it);
    const Walk walked = co_await walking;
    if (walked == Walk::more) may_come_in_ = 1s;
    co_return walked != Walk::store_failed;
  }

  /// Another provider may use the same names for its own.
  bool is_of_this_provider(const Record& record) const {
    return settings_.routes.provider_of(record) == source_.name;
  }

  // A repeated event changes nothing. But an event that was kept for an attempt that has ended
  // since may come again, and counts then.
  bool is_known(const std::vector<EvidenceEntry>& log, const std::optional<Record>& record) const {
    const bool runs = record && record->state == State::in_progress;
    return std::ranges::any_of(log, [&](const EvidenceEntry& line) {
      const bool was_kept = !line.applied && line.before == State::in_progress;
      return (runs || !was_kept) && is_about(line, log_name_of(source_), event_.id);
    });
  }

  Task<std::expected<std::optional<Record>, StoreError>> read() {
    auto asking = ask(Find{*id_});
    auto found = co_await asking;
    if (!found) co_return std::unexpected(std::move(found.error()));
    co_return std::get<std::optional<Record>>(std::move(*found));
  }

  Task<std::optional<std::vector<EvidenceEntry>>> read_log() {
    auto asking = ask(ReadEvidence{*id_});
    auto read = co_await asking;
    if (!read) co_return std::nullopt;
    co_return std::get<std::vector<EvidenceEntry>>(std::move(*read));
  }

  // Where several records have the name, the event proves none of them as executed; but none of
  // them may run again.
  Task<WireAnswer> hold_all() {
    log(LogLevel::warning, "event_name_is_shared", {});
    event_.response.reset();
    for (const RecordId& id : named_) {
      id_ = id;
      auto holding = hold();
      const bool is_held = co_await holding;
      if (!is_held) co_return unavailable();
    }
    co_return event_answer(200, "noted");
  }

  Task<bool> hold() {
    auto reading_log = read_log();
    const auto lines = co_await reading_log;
    if (!lines) co_return false;
    auto reading = read();
    const auto record = co_await reading;
    if (!record) co_return false;
    if (is_known(*lines, *record)) co_return true;
    const Resolve verb = evidence(std::nullopt, false);
    crash_point(CrashPoint::resolve_before_commit);
    auto asking = ask(verb);
    const auto resolved = co_await asking;
    crash_point(CrashPoint::resolve_after_commit);
    co_return resolved.has_value();
  }

  /// `keeps`: the log keeps its answer, too.
  Resolve evidence(std::optional<Fence> fence, bool keeps) const {
    Resolve verb;
    verb.id = *id_;
    verb.as = Resolve::As::completed;
    verb.fence = fence;
    verb.response = event_.response;
    verb.denies = event_.finding == Finding::failed;
    verb.source = log_name_of(source_);
    verb.evidence = evidence_of(event_, body_, keeps);
    verb.observed_at = std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
    return verb;
  }

  void note_foreign(std::string_view state) {
    observer_.shard().foreign_events.add();
    log(LogLevel::error, "event_of_another_provider", state);
  }

  Task<WireAnswer> settle() {
    auto reading_log = read_log();
    const auto lines = co_await reading_log;
    if (!lines) co_return unavailable();
    auto reading = read();
    const auto record = co_await reading;
    if (!record) co_return unavailable();
    if (is_known(*lines, *record)) co_return event_answer(200, "known");
    // Too early to apply: the event's answer is kept, because the attempt may end without one.
    const bool runs = *record && (*record)->state == State::in_progress;
    const bool is_answered = *record && (*record)->state == State::completed && (*record)->response;
    const auto named = event_.fence.and_then(fence_from);
    const bool is_its = *record && (!event_.fence || named == (*record)->fence());
    is_foreign_ = *record && !is_of_this_provider(**record);
    if (is_foreign_ && event_.finding == Finding::failed) {
      // It would be compared with an answer that may still come, and that of another provider.
      note_foreign(name_of((*record)->state));
      co_return event_answer(200, "noted");
    }
    if (!is_foreign_ && is_answered && is_its &&
        agrees(event_.finding, (*record)->response->status)) {
      co_return event_answer(200, "agrees");
    }
    // An event that should name its attempt, and does not, is about none that is known.
    const bool names_its = !source_.fence.empty();
    const auto current = *record && !names_its ? (*record)->fence() : std::nullopt;
    const auto fence = event_.fence ? named : current;
    is_denial_ =
        event_.finding == Finding::failed && reported_finding(*lines, fence) == Finding::found;
    // Without an answer it becomes a line of the log, which only keeps the record from being freed.
    if (is_foreign_ || is_denial_) event_.response.reset();
    const Resolve verb = evidence(fence, runs);
    crash_point(CrashPoint::resolve_before_commit);
    auto asking = ask(verb);
    const auto resolved = co_await asking;
    crash_point(CrashPoint::resolve_after_commit);
    if (!resolved) co_return unavailable();
    const auto reply = std::get<Resolve::Reply>(*resolved);
    is_denial_ |= reply.verdict == Verdict::by_evidence;
    if (is_foreign_) note_foreign(reply.state ? name_of(*reply.state) : "gone");
    if (reply.verdict == Verdict::done) {
      observer_.shard().reconciled[static_cast<std::size_t>(metrics::Reconciled::resolved)].add();
      log(LogLevel::info, "reconciled", "completed");
      if (reply.is_contradicted) Observation::contradicted(observer_, *id_, event_.id);
      co_return event_answer(200, "applied");
    }
    auto judging = judge_refusal(reply, fence);
    auto answer = co_await judging;
    co_return answer;
  }

  Task<WireAnswer> judge_refusal(Resolve::Reply reply, std::optional<Fence> fence) {
    auto reading = read();
    const auto record = co_await reading;
    if (!record) co_return unavailable();
    const std::string_view state = reply.state ? name_of(*reply.state) : "gone";
    if (is_denial_ || contradicts(event_.finding, reply, *record, fence)) {
      observer_.shard().contradictions.add();
      log(LogLevel::error, "evidence_contradicts", state);
    } else if (!is_foreign_ && reply.verdict == Verdict::missing_response) {
      log(LogLevel::error, "event_without_answer", state);
    }
    co_return event_answer(200, reply.state == State::in_progress ? "kept" : "noted");
  }

  Loop& loop_;
  GatewayShared& shared_;
  Observer& observer_;
  const EventSource& source_;
  const GatewaySettings& settings_;
  const std::string_view body_;
  ProviderEvent event_;
  std::vector<RecordId> named_;          ///< The records that have the event's name.
  std::optional<RecordId> id_;           ///< The record of the event.
  std::optional<Millis> may_come_in_{};  ///< When an attempt under way, which may be meant, ends.
  bool is_foreign_ = false;  ///< Another provider knows about records of this operation.
  bool is_denial_ = false;   ///< It reports a failure after a report of execution.
};

}  // namespace

Task<void> serve_event(http::ServerStream& client, GatewayShared& shared, Observer& observer,
                       SharedSettings settings) {
  const auto source = source_of(client.head(), *settings);
  if (!source || client.head().method != "POST") {
    const WireAnswer nobody = to_answer(
        {.code = ProblemCode::not_found,
         .detail = "No provider of this name sends events here, or the method is not POST."});
    co_await client.answer(nobody);
    co_return;
  }
  auto body = co_await client.read_body(limits::event_body_bytes_max, shared.spill);
  if (!body) {
    co_await client.refuse(body.error());
    co_return;
  }
  const auto head = signed_head(client.head(), source->signature);
  const auto genuine = check_signature(source->signature, head, body->bytes(), std::time(nullptr));
  if (!genuine) {
    log_rejected(observer, "event_refused", *source, head, genuine.error());
    const WireAnswer refused = event_answer(401, "refused");
    co_await client.answer(refused);
    co_return;
  }
  auto event = read_event(*source, head.id, body->bytes());
  if (!event) {
    log_rejected(observer, "event_not_understood", *source, head, event.error());
    const WireAnswer useless = event_answer(400, "not_understood");
    co_await client.answer(useless);
    co_return;
  }
  crash_point(CrashPoint::event_verified);
  EventHandler one(client.loop(), shared, observer, *source, *settings, body->bytes());
  auto running = one.run(std::move(*event));
  const WireAnswer answer = co_await running;
  co_await client.answer(answer);
}

}  // namespace idem::gateway
