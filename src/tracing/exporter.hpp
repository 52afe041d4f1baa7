#pragma once

#include "tracing/otlp.hpp"
#include "tracing/tracer.hpp"
#include "webhook/fetch.hpp"

#include <idem/log.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace idem::tracing {

/// Sends what a tracer has (OTLP/HTTP, JSON). A collector that is slow or gone costs spans, which
/// are counted and said in the log; it never delays a request. One thread calls pass().
class Exporter {
 public:
  /// Uses the collector of `settings`, and none of its sampling.
  Exporter(Tracer& tracer, TraceSettings settings, Sender sender, LogSink log);

  /// Sends one batch if there is any; returns how long to rest.
  std::chrono::nanoseconds pass();
  /// Ends a pass that waits, within about a second. Any thread.
  void stop() noexcept { stopping_.store(true); }
  /// When no thread calls pass() any more: tries the rest once, for a bounded time.
  void farewell();

 private:
  enum class Result : std::uint8_t { sent, refused, try_again };

  Result send(const std::string& body, Millis timeout);
  Result answered(const FetchAnswer& answer);
  void failed(std::string_view reason, std::string detail);
  void count(Result result);
  std::chrono::nanoseconds rest_before_retry();

  Tracer& tracer_;
  TraceSettings settings_;
  std::vector<std::string> hosts_;
  Sender sender_;
  LogSink log_;
  Fetcher fetcher_;
  std::atomic<bool> stopping_{false};
  // The batch that is being sent.
  std::string body_;
  std::size_t spans_ = 0;
  std::uint64_t refused_ = 0;
  int tries_ = 0;
};

}  // namespace idem::tracing
