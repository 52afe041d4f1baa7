#include "gateway/observation.hpp"

#include <idem/key.hpp>

#include <idem/limits.hpp>

namespace idem::gateway {
namespace {

using metrics::Outcome;

std::string milliseconds(metrics::Duration took) {
  const auto tenths = std::chrono::duration_cast<std::chrono::microseconds>(took).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string_view ending_of(const StoreCall& call) {
  if (std::holds_alternative<Complete>(call)) return "completed";
  if (std::holds_alternative<Release>(call)) return "released";
  return std::holds_alternative<MarkUnknown>(call) ? "unknown" : "";
}

}  // namespace

void Observer::tell(LogLevel level, std::string_view event,
                    std::initializer_list<LogField> fields) {
  if (!shared_.log) return;
  if (level == LogLevel::error || may_write(event, level)) shared_.log(level, event, fields);
}

bool Observer::may_write(std::string_view event, LogLevel level) {
  Lines& lines = lines_[event];
  const MonotonicTime now = MonotonicClock::now();
  if (now - lines.since >= Millis(1000)) {
    if (lines.kept_back > 0) {
      shared_.log(level, "lines_kept_back",
                  {{"of", std::string(event)}, {"count", std::to_string(lines.kept_back)}});
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
    observer_->tell(LogLevel::warning, "store_error", {{"detail", result.error().detail}});
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

void Observation::contradicted(Observer& observer, const RecordId& id) {
  observer.shard().contradictions.add();
  observer.tell(LogLevel::error, "answer_contradicts_event", {{"operation_ref", to_hex(id.bytes)}});
}

void Observation::finished(const Ending& ending, const Route& route, int status) {
  if (ending.is_contradicted) contradicted(*observer_, ending.id);
  const Duration took = since(began_);
  observer_->shard().request.observe(took);
  const bool misused = reserved_as_ == metrics::name_of(Outcome::key_misuse);
  const bool trouble = ending.owes_settlement || settled_as_ == "unknown" || misused;
  if (!trouble && !observer_->logs_requests()) return;
  const std::string ref = to_hex(ending.id.bytes);
  const std::string& where = route.name.empty() ? route.path.text() : route.name;
  if (ending.owes_settlement) {
    observer_->tell(LogLevel::error, "settle_failed", {{"operation_ref", ref}, {"route", where}});
  } else if (settled_as_ == "unknown") {
    observer_->tell(LogLevel::warning, "outcome_unknown",
                    {{"operation_ref", ref}, {"route", where}, {"status", std::to_string(status)}});
  } else if (misused) {
    observer_->tell(LogLevel::warning, "key_reused", {{"operation_ref", ref}, {"route", where}});
  }
  if (!observer_->logs_requests()) return;
  observer_->tell(LogLevel::info, "request",
                  {{"operation_ref", ref},
                   {"route", where},
                   {"reserve", std::string(reserved_as_.empty() ? "failed" : reserved_as_)},
                   {"ending", std::string(settled_as_.empty() ? "none" : settled_as_)},
                   {"status", std::to_string(status)},
                   {"reserve_ms", milliseconds(reserve_took_)},
                   {"upstream_ms", milliseconds(upstream_took_)},
                   {"settle_ms", milliseconds(settle_took_)},
                   {"total_ms", milliseconds(took)}});
}

void count_failure(metrics::Shard& shard, const StoreResult& result) {
  if (!result) shard.store_errors.add();
}

}  // namespace idem::gateway
