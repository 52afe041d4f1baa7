#include "gateway/observation.hpp"

#include "gateway/auth/client_name.hpp"

#include <idem/console_limits.hpp>
#include <idem/key.hpp>
#include <idem/limits.hpp>

namespace idem::gateway {
namespace {

using metrics::Outcome;

/// In milliseconds, to the tenth.
LogField took(std::string_view name, metrics::Duration time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::microseconds>(time).count() / 100;
  LogField field(name, std::to_string(tenths / 10) + "." + std::to_string(tenths % 10));
  field.is_number = true;
  return field;
}

std::string_view ending_of(const StoreCall& call) {
  if (std::holds_alternative<Complete>(call)) return "completed";
  if (std::holds_alternative<Release>(call)) return "released";
  return std::holds_alternative<MarkUnknown>(call) ? "unknown" : "";
}

std::optional<tracing::Phase> phase_of(const StoreCall& call) {
  using tracing::Phase;
  if (std::holds_alternative<Reserve>(call) || std::holds_alternative<Accept>(call)) {
    return Phase::reserve;
  }
  if (std::holds_alternative<Dispatched>(call)) return Phase::mark;
  if (!ending_of(call).empty()) return Phase::settle;
  return std::nullopt;
}

/// The request's only traceparent; empty: it has none, or several, which count as none (W3C Trace
/// Context §3.2).
std::string_view traceparent_in(const http::RequestHead& head) {
  std::string_view found;
  int count = 0;
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::other) continue;
    if (!http::same_name(field.name, traceparent_field)) continue;
    found = field.value;
    ++count;
  }
  return count == 1 ? found : std::string_view();
}

}  // namespace

void Observer::log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!shared_.log) return;
  if (level == LogLevel::error || may_write(event, level)) shared_.log(level, event, fields);
}

bool Observer::may_write(std::string_view event, LogLevel level) {
  Lines& lines = lines_[event];
  const MonotonicTime now = MonotonicClock::now();
  if (now - lines.since >= Millis(1000)) {
    if (lines.kept_back > 0) {
      shared_.log(level, "lines_kept_back",
                  {{"of", std::string(event)}, {"count", lines.kept_back}});
    }
    lines = {.since = now};
  }
  if (lines.written == limits::request_lines_per_second_max) {
    ++lines.kept_back;
    return false;
  }
  ++lines.written;
  return true;
}

bool Observer::may_compare() noexcept {
  const MonotonicTime now = MonotonicClock::now();
  if (now - compared_at_ < limits::misuse_compared_interval) return false;
  compared_at_ = now;
  return true;
}

void Observer::upstream_answered() {
  shard_.forwarded[static_cast<std::size_t>(metrics::Forwarded::answered)].add();
  log_recovered("upstream_recovered", shared_.registry.upstream().answered(MonotonicClock::now()));
}

void Observer::upstream_failed(metrics::Forwarded result, std::string_view detail) {
  shard_.forwarded[static_cast<std::size_t>(result)].add();
  const std::string why(detail);
  log_failing("upstream_failing", metrics::name_of(result), why,
              shared_.registry.upstream().failed(MonotonicClock::now(), metrics::name_of(result),
                                                 why, false));
}

void Observer::upstream_broke_off(bool by_timeout) {
  if (by_timeout) {
    upstream_failed(metrics::Forwarded::timeout, "its answer did not go on within its time");
  } else {
    upstream_failed(metrics::Forwarded::cut, "its answer was cut");
  }
}

void Observer::upstream_not_reached(const http::ConnectFailure& failure) {
  using Reason = http::ConnectFailure::Reason;
  auto reason = metrics::NotReached::connect;
  switch (failure.reason) {
    case Reason::connect:
      break;
    case Reason::resolve:
      reason = metrics::NotReached::resolve;
      break;
    case Reason::timeout:
      reason = metrics::NotReached::timeout;
      break;
    case Reason::tls:
      reason = metrics::NotReached::tls;
      break;
    case Reason::closed:
      reason = metrics::NotReached::closed;
      break;
  }
  upstream_not_reached(reason, failure.why);
}

void Observer::upstream_took_nothing() {
  upstream_not_reached(metrics::NotReached::closed, "it closed before it accepted a byte");
}

void Observer::upstream_not_reached(metrics::NotReached reason, const std::string& detail) {
  shard_.forwarded[static_cast<std::size_t>(metrics::Forwarded::not_reached)].add();
  shard_.not_reached[static_cast<std::size_t>(reason)].add();
  log_failing("upstream_failing", metrics::name_of(reason), detail,
              shared_.registry.upstream().failed(MonotonicClock::now(), metrics::name_of(reason),
                                                 detail, true));
}

void Observer::authorizer_answered(bool allowed) {
  const auto result = allowed ? metrics::Authorized::allowed : metrics::Authorized::refused;
  shard_.authorized[static_cast<std::size_t>(result)].add();
  log_recovered("authorizer_recovered",
                shared_.registry.authorizer().answered(MonotonicClock::now()));
}

void Observer::authorizer_failed(std::string_view reason, std::string detail) {
  shard_.authorized[static_cast<std::size_t>(metrics::Authorized::failed)].add();
  const bool is_proof = reason == "not_reached";
  log_failing(
      "authorizer_failing", reason, detail,
      shared_.registry.authorizer().failed(MonotonicClock::now(), reason, detail, is_proof));
}

void Observer::store_answered() {
  log_recovered("store_recovered", shared_.registry.store().answered(MonotonicClock::now()));
}

void Observer::store_failed(const StoreError& error) {
  using Code = StoreError::Code;
  switch (error.code) {
    case Code::damaged:  // It has its own line, one for each record.
      return;
    case Code::unstorable:  // The request is why, and the store works.
      return log(LogLevel::warning, "request_not_storable", {{"detail", error.detail}});
    case Code::unavailable:
    case Code::in_doubt:
    case Code::refused:
      break;
  }
  const std::string_view reason = error.code == Code::unavailable ? "unavailable"
                                  : error.code == Code::in_doubt  ? "in_doubt"
                                                                  : "refused";
  log_failing("store_error", reason, error.detail,
              shared_.registry.store().failed(MonotonicClock::now(), reason, error.detail, false));
}

void Observer::log_failing(std::string_view event, std::string_view reason,
                           const std::string& detail,
                           const std::optional<OutageLines::Line>& line) {
  if (!line || !shared_.log) return;
  shared_.log(LogLevel::warning, event,
              {{"reason", std::string(reason)},
               {"detail", detail},
               {"failures", line->failures},
               {"seconds", line->lasting.count() / 1'000}});
}

void Observer::log_recovered(std::string_view event, const std::optional<OutageLines::Line>& line) {
  if (!line || !shared_.log) return;
  shared_.log(LogLevel::info, event,
              {{"failures", line->failures}, {"seconds", line->lasting.count() / 1'000}});
}

void Observation::key(std::string_view key) {
  if (looks_like(key) != PersonalData::none) observer_->shard().personal_keys.add();
}

void Observation::trace(const http::RequestHead& head, const Route& route, Origin origin) {
  if (observer_->tracer() == nullptr) return;
  trace_.begin(*observer_->tracer(), observer_->ids(), traceparent_in(head));
  auto* const trace = trace_.recorded();
  if (trace == nullptr) return;
  trace->is_background = origin == Origin::stored;
  trace->method = head.method;
  trace->route = route.label();
}

std::optional<TraceId> Observation::trace_id(const http::RequestHead& head) const noexcept {
  if (const auto* own = trace_.context()) return own->trace;
  const auto sent = parse_traceparent(traceparent_in(head));
  return sent ? std::optional(sent->trace) : std::nullopt;
}

void Observation::observe(metrics::Histogram& histogram, Duration took) {
  histogram.observe(took);
  if (!trace_.is_recorded()) return;
  histogram.keep_exemplar({*trace_.context(), took, std::chrono::system_clock::now()});
}

void Observation::connected(const ExchangeEvent& event) {
  if (std::holds_alternative<UpstreamNotReached>(event)) trace_.end(Phase::dispatch, true);
}

void Observation::sent(const ExchangeEvent& event) {
  observe(observer_->shard().upstream, upstream_took_ = since(asked_at_));
  if (std::holds_alternative<UpstreamReady>(event))
    return;  // It is sent again, on a new connection.
  int status = 0;
  if (const auto* whole = std::get_if<UpstreamAnswered>(&event)) status = whole->answer.status;
  if (const auto* head = std::get_if<UpstreamOversize>(&event)) status = head->head.answer.status;
  trace_.end(Phase::dispatch, status == 0, status);
}

void Observation::ran_in(const std::string& traceparent) {
  if (auto* const trace = trace_.recorded()) trace->ran_in = parse_traceparent(traceparent);
}

void Observation::asking(const StoreCall& call) {
  asked_phase_ = phase_of(call);
  if (asked_phase_) trace_.begin(*asked_phase_);
  ending_asked_ = ending_of(call);
  if (const auto* release = std::get_if<Release>(&call)) basis_ = release->basis;
  if (const auto* unknown = std::get_if<MarkUnknown>(&call)) {
    scheduled_ = unknown->reconcile_in.has_value();
  }
  asked_at_ = Clock::now();
}

void Observation::answered(const StoreResult& result, std::string_view scope) {
  auto& shard = observer_->shard();
  if (asked_phase_) trace_.end(*asked_phase_, !result);
  if (!result) {
    count_failure(shard, result);
    observer_->store_failed(result.error());
    return;
  }
  observer_->store_answered();
  if (const auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
    observe(shard.reserve, reserve_took_ = since(asked_at_));
    reserved(metrics::outcome_of(*outcome), scope);
  } else if (const auto* reply = std::get_if<OwnerReply>(&*result);
             reply != nullptr && !ending_asked_.empty()) {
    observe(shard.settle, settle_took_ = since(asked_at_));
    if (reply->verdict == Verdict::done) settled();
  }
}

void Observation::replayed(std::string_view scope) { reserved(Outcome::replay, scope); }

void Observation::reserved(Outcome kind, std::string_view scope) {
  auto& shard = observer_->shard();
  reserved_as_ = metrics::name_of(kind);
  shard.reserves[static_cast<std::size_t>(kind)].add();
  if (kind == Outcome::quota_exceeded) observer_->quota_refusals().note(scope);
  const bool is_new = kind == Outcome::created || kind == Outcome::quota_exceeded;
  retried_as_ = is_new ? std::nullopt : std::optional(kind);
  if (is_new) return;
  shard.duplicates[observer_->tenants().place_of(scope)].add();
  retried_in_ = scope;
}

void Observation::settled() {
  settled_as_ = ending_asked_;
  auto& shard = observer_->shard();
  if (settled_as_ == "released") shard.releases[static_cast<std::size_t>(basis_)].add();
  if (settled_as_ == "unknown" && scheduled_) {
    shard.reconciled[static_cast<std::size_t>(metrics::Reconciled::scheduled)].add();
  }
}

void Observation::contradicted(Observer& observer, const RecordId& id, std::string_view event) {
  observer.shard().contradictions.add();
  const std::string ref = to_hex(id.bytes);
  if (event.empty()) {
    observer.log(LogLevel::error, "answer_contradicts_event", {{"operation_ref", ref}});
  } else {
    observer.log(LogLevel::error, "answer_contradicts_event",
                 {{"operation_ref", ref}, {"event_id", std::string(event)}});
  }
}

/// With the trace, where the request is recorded.
template <class... Fields>
void Observation::log(LogLevel level, std::string_view event, Fields... fields) {
  if (!trace_.is_recorded()) return observer_->log(level, event, {std::move(fields)...});
  observer_->log(level, event,
                 {std::move(fields)..., {"trace_id", to_hex(trace_.context()->trace.bytes)}});
}

void Observation::note_retry(const RecordId& id, const Route& route, int status) {
  const std::string client = client_ == nullptr ? std::string() : client_name(*client_, *source_);
  const auto number = observer_->retries().note({.id = id,
                                                 .outcome = *retried_as_,
                                                 .status = status,
                                                 .scope = retried_in_,
                                                 .route = route.label(),
                                                 .client = client});
  if (retried_as_ == Outcome::key_misuse) misuse_ = number;
}

void Observation::finished(const Ending& ending, const Route& route, int status) {
  if (retried_as_) note_retry(ending.id, route, status);
  if (ending.is_contradicted) contradicted(*observer_, ending.id);
  const Duration total = since(began_);
  observe(observer_->shard().request, total);
  trace_.answered(status);
  if (auto* const trace = trace_.recorded()) {
    trace->operation_ref = to_hex(ending.id.bytes);
    trace->reserved_as = reserved_as_;
    trace->settled_as = settled_as_;
  }
  const bool misused = reserved_as_ == metrics::name_of(Outcome::key_misuse);
  const bool trouble = ending.owes_settlement || settled_as_ == "unknown" || misused;
  if (!trouble && !observer_->logs_requests()) return;
  const std::string ref = to_hex(ending.id.bytes);
  const std::string& where = route.label();
  if (ending.owes_settlement) {
    log(LogLevel::error, "settle_failed", LogField("operation_ref", ref), LogField("route", where));
  } else if (settled_as_ == "unknown") {
    log(LogLevel::warning, "outcome_unknown", LogField("operation_ref", ref),
        LogField("route", where), LogField("status", status));
  } else if (misused) {
    log(LogLevel::warning, "key_reused", LogField("operation_ref", ref), LogField("route", where));
  }
  if (!observer_->logs_requests()) return;
  log(LogLevel::info, "request", LogField("operation_ref", ref), LogField("route", where),
      LogField("reserve", std::string(reserved_as_.empty() ? "failed" : reserved_as_)),
      LogField("ending", std::string(settled_as_.empty() ? "none" : settled_as_)),
      LogField("status", status), took("reserve_ms", reserve_took_),
      took("upstream_ms", upstream_took_), took("settle_ms", settle_took_),
      took("total_ms", total));
}

// A request that is too large for the store's settings says nothing about the store, and a client
// could wake a person with it.
void count_failure(metrics::Shard& shard, const StoreResult& result) {
  if (!result && result.error().code != StoreError::Code::unstorable) shard.store_errors.add();
}

}  // namespace idem::gateway
