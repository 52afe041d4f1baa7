#include "cli/commands/tracing.hpp"

namespace idem::cli {

Tracing::Tracing(const tracing::TraceSettings& settings, const std::string& instance, LogSink log) {
  if (settings.url.empty()) return;
  counts_ = std::make_shared<metrics::SpanCounts>();
  tracer_.emplace(settings.sampling, counts_);
  exporter_.emplace(*tracer_, settings, tracing::Sender{settings.service, IDEM_VERSION, instance},
                    std::move(log));
}

void Tracing::start() {
  if (!exporter_) return;
  runner_ = std::make_unique<workers::Runner>([this] { return exporter_->pass(); });
}

void Tracing::stop() {
  if (!runner_) return;
  exporter_->stop();
  runner_->stop();
  exporter_->farewell();
}

}  // namespace idem::cli
