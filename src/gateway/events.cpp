#include "gateway/events.hpp"

#include "core/event_source.hpp"
#include "loop/store_link.hpp"

#include <idem/crash_point.hpp>
#include <idem/worker_limits.hpp>

#include <ctime>

namespace idem::gateway {
namespace {

using Verdict = Resolve::Verdict;

Answer told(int status, std::string_view outcome) {
  Answer answer{status, {}, {}};
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
  auto path = std::string_view(head.origin_form).substr(0, head.origin_form.find('?'));
  path.remove_prefix(events_path.size());
  const auto found = settings.event_sources.find(path);
  return found != settings.event_sources.end() ? found->second : nullptr;
}

/// One event, from its bytes to what is told of it.
class EventCase {
 public:
  EventCase(Loop& loop, GatewayShared& shared, Observer& observer, const EventSource& source,
            std::string_view body)
      : loop_(loop), shared_(shared), observer_(observer), source_(source), body_(body) {}

  Task<Answer> run(EventSays event) {
    event_ = std::move(event);
    if (!is_positive(event_.finding)) co_return told(200, "ignored");
    auto finding = find_record();
    const bool reached = co_await finding;
    if (!reached) co_return unavailable();
    if (!id_) {
      log(LogLevel::warning, "event_without_record", {});
      co_return told(200, "no_record");
    }
    auto knowing = is_known();
    const auto known = co_await knowing;
    if (!known) co_return unavailable();
    if (*known) co_return told(200, "known");
    auto settling = settle();
    auto answer = co_await settling;
    co_return answer;
  }

 private:
  Task<StoreResult> ask(StoreCall call) {
    auto asking = idem::ask_store(loop_, shared_.store, call);
    auto result = co_await asking;
    count_failure(observer_.shard(), result);
    co_return result;
  }

  static Answer unavailable() {
    Answer answer = told(503, "store_unavailable");
    answer.headers.push_back({"Retry-After", "1"});
    return answer;
  }

  void log(LogLevel level, std::string_view event, std::string_view state) {
    observer_.tell(level, event,
                   {{"provider", source_.name},
                    {"operation_ref", id_ ? to_hex(id_->bytes) : std::string()},
                    {"said", std::string(name_of(event_.finding))},
                    {"state", std::string(state)}});
  }

  // By the handle, or, where the event has only the upstream's own reference, among those of which
  // nobody knows how they ended. False: the store could not be asked.
  Task<bool> find_record() {
    id_ = event_.operation;
    if (id_ || event_.reference.empty()) co_return true;
    List page{.state = State::unknown, .limit = limits::list_page_max};
    for (std::size_t seen = 0; seen < limits::event_references_seen_max;
         seen += limits::list_page_max) {
      auto asking = ask(page);
      const auto listed = co_await asking;
      if (!listed) co_return false;
      const auto& records = std::get<std::vector<Record>>(*listed);
      for (const Record& record : records) {
        if (record.upstream_reference == event_.reference) id_ = record.id;
      }
      if (id_ || records.size() < limits::list_page_max) break;
      page.after = records.back().id;
    }
    co_return true;
  }

  // Twice is once. None: the store could not be asked.
  Task<std::optional<bool>> is_known() {
    auto asking = ask(ReadEvidence{*id_});
    const auto read = co_await asking;
    if (!read) co_return std::nullopt;
    for (const EvidenceEntry& line : std::get<std::vector<EvidenceEntry>>(*read)) {
      if (is_about(line, log_name_of(source_), event_.id)) co_return true;
    }
    co_return false;
  }

  Task<std::expected<std::optional<Record>, StoreError>> read() {
    auto asking = ask(Find{*id_});
    auto found = co_await asking;
    if (!found) co_return std::unexpected(std::move(found.error()));
    co_return std::get<std::optional<Record>>(std::move(*found));
  }

  Task<Answer> settle() {
    auto reading = read();
    const auto record = co_await reading;
    if (!record) co_return unavailable();
    // Too early to be applied: its answer is kept, for an attempt that may yet end without one.
    const bool runs = *record && (*record)->state == State::in_progress;
    const bool is_answered = *record && (*record)->state == State::completed && (*record)->response;
    if (is_answered && agrees(event_.finding, (*record)->response->status)) {
      co_return told(200, "agrees");
    }
    Resolve verb;
    verb.id = *id_;
    verb.as = Resolve::As::completed;
    verb.fence = event_.fence.value_or(*record ? (*record)->attempt.fence : 0);
    verb.response = event_.response;
    verb.source = log_name_of(source_);
    verb.evidence = evidence_of(event_, body_, runs);
    verb.observed_at = std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
    crash_point(CrashPoint::resolve_before_commit);
    auto asking = ask(verb);
    const auto resolved = co_await asking;
    crash_point(CrashPoint::resolve_after_commit);
    if (!resolved) co_return unavailable();
    const auto reply = std::get<Resolve::Reply>(*resolved);
    if (reply.verdict == Verdict::done) {
      observer_.shard().reconciled[static_cast<std::size_t>(metrics::Reconciled::resolved)].add();
      log(LogLevel::info, "reconciled", "completed");
      co_return told(200, "applied");
    }
    auto judging = judge_refusal(reply, verb.fence);
    auto answer = co_await judging;
    co_return answer;
  }

  Task<Answer> judge_refusal(Resolve::Reply reply, Fence fence) {
    auto reading = read();
    const auto record = co_await reading;
    if (!record) co_return unavailable();
    const std::string_view state = reply.state ? name_of(*reply.state) : "gone";
    if (contradicts(event_.finding, reply, *record, fence)) {
      observer_.shard().contradictions.add();
      log(LogLevel::error, "evidence_contradicts", state);
    } else if (reply.verdict == Verdict::missing_response) {
      log(LogLevel::error, "event_without_answer", state);
    }
    co_return told(200, reply.state == State::in_progress ? "kept" : "noted");
  }

  Loop& loop_;
  GatewayShared& shared_;
  Observer& observer_;
  const EventSource& source_;
  const std::string_view body_;
  EventSays event_;
  std::optional<RecordId> id_;
};

}  // namespace

Task<void> serve_event(http::ServerStream& client, GatewayShared& shared, Observer& observer,
                       SharedSettings settings) {
  const auto source = source_of(client.head(), *settings);
  if (!source || client.head().method != "POST") {
    const Answer nobody =
        to_answer({.code = ProblemCode::not_found,
                   .detail = "No provider of this name sends events here, or not so."});
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
    observer.tell(LogLevel::warning, "event_refused",
                  {{"provider", source->name}, {"detail", genuine.error()}});
    const Answer refused = told(401, "refused");
    co_await client.answer(refused);
    co_return;
  }
  auto event = read_event(*source, head.id, body->bytes());
  if (!event) {
    observer.tell(LogLevel::warning, "event_not_understood",
                  {{"provider", source->name}, {"detail", event.error()}});
    const Answer useless = told(400, "not_understood");
    co_await client.answer(useless);
    co_return;
  }
  crash_point(CrashPoint::event_verified);
  EventCase one(client.loop(), shared, observer, *source, body->bytes());
  auto running = one.run(std::move(*event));
  const Answer answer = co_await running;
  co_await client.answer(answer);
}

}  // namespace idem::gateway
