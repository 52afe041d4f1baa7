#include "tracing/exporter.hpp"

#include <idem/trace_limits.hpp>

#include <algorithm>
#include <utility>

namespace idem::tracing {
namespace {

std::string_view name_of(FetchError::Kind kind) noexcept {
  switch (kind) {
    case FetchError::Kind::refused_by_rule:
      return "rule";
    case FetchError::Kind::connect:
      return "connect";
    case FetchError::Kind::tls:
      return "tls";
    case FetchError::Kind::timeout:
      return "timeout";
    case FetchError::Kind::too_large:
      return "too_large";
    case FetchError::Kind::protocol:
      return "protocol";
  }
  return "";
}

/// OTLP/HTTP, "Failures": a collector may answer one of these to be asked again.
bool means_again(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

Exporter::Exporter(Tracer& tracer, TraceSettings settings, Sender sender, LogSink log)
    : tracer_(tracer),
      settings_(std::move(settings)),
      sender_(std::move(sender)),
      log_(std::move(log)) {
  if (auto host = fetch_host_of(settings_.url)) hosts_.push_back(std::move(*host));
}

std::chrono::nanoseconds Exporter::pass() {
  if (body_.empty()) {
    const auto traces = tracer_.take(limits::traces_per_sending);
    if (traces.empty()) return limits::traces_interval;
    body_ = to_otlp(traces, sender_);
    spans_ = spans_of(traces);
    tries_ = 0;
  }
  const Result result = send(body_, limits::traces_timeout);
  ++tries_;
  // Behind a stop the farewell tries it once more.
  if (result == Result::try_again && tries_ < limits::traces_tries_max) return rest_before_retry();
  count(result);
  return limits::traces_interval;
}

void Exporter::farewell() {
  stopping_.store(false);
  const auto end = MonotonicClock::now() + limits::traces_farewell;
  const auto left = [end] { return std::chrono::floor<Millis>(end - MonotonicClock::now()); };
  do {
    if (body_.empty()) {
      const auto traces = tracer_.take(limits::traces_per_sending);
      if (traces.empty()) return;
      body_ = to_otlp(traces, sender_);
      spans_ = spans_of(traces);
    }
    count(send(body_, std::max<Millis>(left(), Millis(1))));
  } while (left() > Millis(0));
}

std::chrono::nanoseconds Exporter::rest_before_retry() {
  Millis rest = limits::traces_retry_first;
  for (int i = 1; i < tries_; ++i) rest *= 2;
  return std::min<Millis>(rest, limits::traces_retry_max);
}

void Exporter::count(Result result) {
  auto& counts = tracer_.counts();
  const std::uint64_t refused = std::min<std::uint64_t>(refused_, spans_);
  switch (result) {
    case Result::sent:
      counts.add(metrics::Spanned::sent, spans_ - refused);
      counts.add(metrics::Spanned::refused, refused);
      break;
    case Result::refused:
      counts.add(metrics::Spanned::refused, spans_);
      break;
    case Result::try_again:
      counts.add(metrics::Spanned::not_sent, spans_);
      break;
  }
  std::string().swap(body_);
  spans_ = 0;
  refused_ = 0;
}

Exporter::Result Exporter::send(const std::string& body, Millis timeout) {
  FetchRequest request{.method = "POST",
                       .url = settings_.url,
                       .headers = settings_.headers,
                       .body = body,
                       .timeout = timeout,
                       .max_bytes = limits::traces_answer_bytes_max,
                       .allowed_hosts = hosts_,
                       .ca_file = settings_.ca_file,
                       .is_abandoned = &stopping_};
  request.headers.push_back({"Content-Type", "application/json"});
  const auto answer = fetcher_.fetch(request);
  if (answer) return answered(*answer);
  failed(name_of(answer.error().kind), answer.error().why);
  return Result::try_again;
}

Exporter::Result Exporter::answered(const FetchAnswer& answer) {
  if (answer.status == 200) {
    refused_ = refused_spans(answer.body);
    const auto line = tracer_.counts().collector.answered(MonotonicClock::now());
    if (line && log_) {
      log_(LogLevel::info, "traces_recovered",
           {{"failures", line->failures}, {"seconds", line->lasting.count() / 1'000}});
    }
    return Result::sent;
  }
  failed("status", "it answered " + std::to_string(answer.status));
  return means_again(answer.status) ? Result::try_again : Result::refused;
}

void Exporter::failed(std::string_view reason, std::string detail) {
  const auto line = tracer_.counts().collector.failed(MonotonicClock::now(), reason, detail, true);
  if (!line || !log_) return;
  log_(LogLevel::warning, "traces_failing",
       {{"reason", std::string(reason)},
        {"detail", std::move(detail)},
        {"failures", line->failures},
        {"seconds", line->lasting.count() / 1'000}});
}

}  // namespace idem::tracing
