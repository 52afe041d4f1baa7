#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/route.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"
#include "http/server_stream.hpp"
#include "http/upstream_pool.hpp"
#include "metrics/registry.hpp"
#include "tracing/tracer.hpp"

#include <idem/log.hpp>

#include <map>
#include <string>
#include <string_view>

namespace idem::gateway {

/// Where a gateway counts and logs.
struct Observing {
  metrics::Registry& registry;
  LogSink log;
  bool log_requests = false;  ///< A line for each keyed request, besides those about trouble.
  tracing::Tracer* tracer = nullptr;  ///< Null: nothing is traced. Outlives the observers.
};

/// One loop's part of it. Loop's thread only.
class Observer {
 public:
  explicit Observer(Observing& shared) : shared_(shared), shard_(shared.registry.add_shard()) {
    if (shared.tracer != nullptr) ids_.emplace();
  }

  /// Writes the line, unless too many of this event were written in this second; an error in any
  /// case. `event` is a literal.
  void log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);
  bool logs_requests() const noexcept { return shared_.log_requests; }

  /// The result of a request to the upstream: counted once for each, however many connections were
  /// tried. Few lines are logged for many failures (OutageLines).
  void upstream_answered();
  void upstream_failed(metrics::Forwarded result, std::string_view detail);
  /// It ended in the middle of an answer, of which the client may have a part already.
  void upstream_broke_off(bool by_timeout);
  void upstream_not_reached(const http::ConnectFailure& failure);
  /// The upstream closed the connection before it accepted a byte.
  void upstream_took_nothing();

  /// The result of a question to the authoriser.
  void authorizer_answered(bool allowed);
  void authorizer_failed(std::string_view reason, std::string detail);

  /// The result of a call of the store: few lines for many failures, and one when it answers again.
  void store_answered();
  void store_failed(const StoreError& error);

  metrics::Shard& shard() noexcept { return shard_; }
  tracing::Tracer* tracer() noexcept { return shared_.tracer; }
  /// Only where there is a tracer.
  tracing::Ids& ids() noexcept { return *ids_; }
  /// Whether another misuse may be compared now.
  bool may_compare() noexcept;
  metrics::Retries& retries() noexcept { return shared_.registry.retries(); }
  metrics::Tenants& tenants() noexcept { return shared_.registry.tenants(); }
  metrics::QuotaRefusals& quota_refusals() noexcept { return shared_.registry.quota_refusals(); }

 private:
  void upstream_not_reached(metrics::NotReached reason, const std::string& detail);
  void log_failing(std::string_view event, std::string_view reason, const std::string& detail,
                   const std::optional<OutageLines::Line>& line);
  void log_recovered(std::string_view event, const std::optional<OutageLines::Line>& line);

  struct Lines {
    MonotonicTime since{};
    unsigned written = 0;
    std::uint64_t kept_back = 0;
  };
  bool may_write(std::string_view event, LogLevel level);

  Observing& shared_;
  metrics::Shard& shard_;
  std::optional<tracing::Ids> ids_;
  MonotonicTime compared_at_{};
  std::map<std::string_view, Lines> lines_;  ///< Of each event: one must not silence another.
};

/// Counts, logs and traces one keyed request: its calls of the store and the upstream, how long
/// they took, and how it ended. The request begins when this is made.
class Observation {
 public:
  explicit Observation(Observer& observer) : observer_(&observer) {}

  void key(std::string_view key);
  /// Who sent it. Both outlive this.
  void from(const http::ServerStream& client, const ScopeSource& source) noexcept {
    client_ = &client;
    source_ = &source;
  }
  /// The number of a misuse among the retries; none: it is none, or is not finished().
  std::optional<std::uint64_t> misuse() const noexcept { return misuse_; }
  using Phase = tracing::Phase;
  /// Begins the request's trace, where there is a tracer; the request that was stored has the
  /// traceparent of its accept.
  enum class Origin : std::uint8_t { client, stored };
  void trace(const http::RequestHead& head, const Route& route, Origin origin);
  tracing::RequestTrace& trace() noexcept { return trace_; }
  /// The request's trace: its own, or without a tracer that of its traceparent.
  std::optional<TraceId> trace_id(const http::RequestHead& head) const noexcept;

  /// Before and after a call of the store. `scope` outlives this, also below.
  void asking(const StoreCall& call);
  void answered(const StoreResult& result, std::string_view scope);
  /// Instead of asking: the answer came from memory.
  void replayed(std::string_view scope);
  /// Before the connection, and before and after the sending.
  void connecting() { trace_.begin(Phase::dispatch); }
  void sending() { asked_at_ = Clock::now(); }
  void sent(const ExchangeEvent& event);
  /// Without a sending: there was no connection.
  void connected(const ExchangeEvent& event);
  /// The answer is that of another request; empty: it is not, or nobody recorded that.
  void ran_in(const std::string& traceparent);
  /// The client gets this without a result of the exchange. Does nothing behind finished().
  void refused(int status) { trace_.answered(status); }

  /// Counts and logs an error: the stored answer contradicts an event. `event`: its id, where this
  /// process knows it.
  static void contradicted(Observer& observer, const RecordId& id, std::string_view event = {});

  /// The client is about to be answered. The log names the route: a path may hold names of people.
  void finished(const Exchange& exchange, const Route& route, int status) {
    finished({exchange.id(), exchange.owes_settlement(), exchange.is_contradicted()}, route,
             status);
  }
  struct Ending {
    RecordId id;
    bool owes_settlement = false;
    bool is_contradicted = false;
  };
  void finished(const Ending& ending, const Route& route, int status);

  metrics::Shard& shard() noexcept { return observer_->shard(); }
  Observer& observer() noexcept { return *observer_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Duration = metrics::Duration;

  static Duration since(Clock::time_point moment) { return Clock::now() - moment; }
  void observe(metrics::Histogram& histogram, Duration took);
  template <class... Fields>
  void log(LogLevel level, std::string_view event, Fields... fields);
  void reserved(metrics::Outcome outcome, std::string_view scope);
  void note_retry(const RecordId& id, const Route& route, int status);
  void settled();

  Observer* observer_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point asked_at_{};
  tracing::RequestTrace trace_;
  std::optional<Phase> asked_phase_{};
  std::string_view ending_asked_;  ///< Empty for calls that end nothing.
  ReleaseBasis basis_ = ReleaseBasis::proven;
  bool scheduled_ = false;
  Duration reserve_took_{};
  Duration upstream_took_{};
  Duration settle_took_{};
  const http::ServerStream* client_ = nullptr;
  const ScopeSource* source_ = nullptr;
  std::optional<metrics::Outcome> retried_as_{};  ///< None: its key had no record.
  std::optional<std::uint64_t> misuse_{};
  std::string_view retried_in_;   ///< The scope of a retry; outlives this.
  std::string_view reserved_as_;  ///< Static texts; empty: it did not happen.
  std::string_view settled_as_;
};

/// For a call of the store that no keyed request made.
void count_failure(metrics::Shard& shard, const StoreResult& result);

}  // namespace idem::gateway
