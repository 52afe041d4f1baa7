#pragma once

#include "metrics/outside.hpp"
#include "tracing/exporter.hpp"
#include "tracing/settings.hpp"
#include "tracing/tracer.hpp"
#include "workers/runner.hpp"

#include <idem/log.hpp>

#include <memory>
#include <optional>

namespace idem::cli {

/// The traces of a process: what requests record, and the thread that sends it. Outlives all that
/// record.
class Tracing {
 public:
  /// Without a collector it traces nothing. `instance`: this node's name.
  Tracing(const tracing::TraceSettings& settings, const std::string& instance, LogSink log);

  /// Null: nothing is traced.
  tracing::Tracer* tracer() noexcept { return tracer_ ? &*tracer_ : nullptr; }
  const std::shared_ptr<metrics::SpanCounts>& counts() const noexcept { return counts_; }
  void start();
  /// Sends what is left, for a bounded time. Later spans are not sent.
  void stop();

 private:
  std::shared_ptr<metrics::SpanCounts> counts_;
  std::optional<tracing::Tracer> tracer_;
  std::optional<tracing::Exporter> exporter_;
  std::unique_ptr<workers::Runner> runner_;
};

}  // namespace idem::cli
