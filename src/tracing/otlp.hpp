#pragma once

#include "tracing/trace.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace idem::tracing {

/// Who sends the spans: attributes of their resource (OpenTelemetry semantic conventions).
struct Sender {
  std::string service;   ///< service.name
  std::string version;   ///< service.version
  std::string instance;  ///< service.instance.id
};

/// One ExportTraceServiceRequest in JSON (OTLP 1.3, "JSON Protobuf encoding").
std::string to_otlp(std::span<const std::unique_ptr<Trace>> traces, const Sender& sender);

/// How many spans all these are.
std::size_t spans_of(std::span<const std::unique_ptr<Trace>> traces) noexcept;

/// How many spans a collector refused, by its answer of status 200 (OTLP, "Partial Success"); 0
/// also for an answer that cannot be read.
std::uint64_t refused_spans(std::string_view answer);

}  // namespace idem::tracing
