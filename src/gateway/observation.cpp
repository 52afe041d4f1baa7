#include "gateway/observation.hpp"

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

void Observation::asking(const StoreCall& call) {
  ending_asked_ = ending_of(call);
  if (const auto* release = std::get_if<Release>(&call)) basis_ = release->basis;
  if (const auto* unknown = std::get_if<MarkUnknown>(&call)) {
    scheduled_ = unknown->reconcile_in.has_value();
  }
  asked_at_ = Clock::now();
}

void Observation::answered(const StoreResult& result, std::string_view scope) {
  auto& shard = observer_->shard();
  if (!result) {
    shard.store_errors.add();
    observer_->log(LogLevel::warning, "store_error", {{"detail", result.error().detail}});
    return;
  }
  if (const auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
    shard.reserve.observe(reserve_took_ = since(asked_at_));
    reserved(metrics::outcome_of(*outcome), scope);
  } else if (const auto* reply = std::get_if<OwnerReply>(&*result);
             reply != nullptr && !ending_asked_.empty()) {
    shard.settle.observe(settle_took_ = since(asked_at_));
    if (reply->verdict == Verdict::done) settled();
  }
}

void Observation::replayed(std::string_view scope) { reserved(Outcome::replay, scope); }

void Observation::reserved(Outcome kind, std::string_view scope) {
  auto& shard = observer_->shard();
  reserved_as_ = metrics::name_of(kind);
  shard.reserves[static_cast<std::size_t>(kind)].add();
  const bool is_new = kind == Outcome::created || kind == Outcome::quota_exceeded;
  if (!is_new) shard.duplicates[observer_->tenants().place_of(scope)].add();
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

void Observation::finished(const Ending& ending, const Route& route, int status) {
  if (ending.is_contradicted) contradicted(*observer_, ending.id);
  const Duration total = since(began_);
  observer_->shard().request.observe(total);
  const bool misused = reserved_as_ == metrics::name_of(Outcome::key_misuse);
  const bool trouble = ending.owes_settlement || settled_as_ == "unknown" || misused;
  if (!trouble && !observer_->logs_requests()) return;
  const std::string ref = to_hex(ending.id.bytes);
  const std::string& where = route.label();
  if (ending.owes_settlement) {
    observer_->log(LogLevel::error, "settle_failed", {{"operation_ref", ref}, {"route", where}});
  } else if (settled_as_ == "unknown") {
    observer_->log(LogLevel::warning, "outcome_unknown",
                   {{"operation_ref", ref}, {"route", where}, {"status", status}});
  } else if (misused) {
    observer_->log(LogLevel::warning, "key_reused", {{"operation_ref", ref}, {"route", where}});
  }
  if (!observer_->logs_requests()) return;
  observer_->log(LogLevel::info, "request",
                 {{"operation_ref", ref},
                  {"route", where},
                  {"reserve", std::string(reserved_as_.empty() ? "failed" : reserved_as_)},
                  {"ending", std::string(settled_as_.empty() ? "none" : settled_as_)},
                  {"status", status},
                  took("reserve_ms", reserve_took_),
                  took("upstream_ms", upstream_took_),
                  took("settle_ms", settle_took_),
                  took("total_ms", total)});
}

void count_failure(metrics::Shard& shard, const StoreResult& result) {
  if (!result) shard.store_errors.add();
}

}  // namespace idem::gateway
