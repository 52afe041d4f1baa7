#pragma once

#include "core/trace/trace_context.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idem::tracing {

/// What a keyed request does, as the names of its spans.
enum class Phase : std::uint8_t {
  fingerprint,  ///< The key's digest and that of the request.
  reserve,      ///< The store's answer to a reserve, or to an accept of a request to be stored.
  wait,         ///< For the attempt of another request.
  mark,         ///< A dispatch mark of its own.
  dispatch,     ///< From the connection to the whole answer. The upstream's parent.
  settle,       ///< The write that makes the outcome durable.
};
inline constexpr std::size_t phase_count = 6;
std::string_view name_of(Phase phase) noexcept;

using Steady = std::chrono::steady_clock::time_point;

struct Span {
  Phase phase{};
  SpanId id{};
  Steady began{};
  Steady ended{};
  bool is_open = true;
  bool has_failed = false;
  int status = 0;  ///< Of the upstream's answer; 0: none, or another phase.
};

/// What the upstream gets.
struct Outgoing {
  TraceContext parent{};
  bool keeps_state = false;  ///< The client's tracestate belongs to it.
};

/// What is known of one request. Its own span is the parent of its spans.
struct Trace {
  /// More than a request with one retry of each call has; others are not kept.
  static constexpr std::size_t spans_max = 12;

  TraceContext own{};
  std::optional<SpanId> parent{};
  bool keeps_state = false;    ///< Its tracestate belongs to a traceparent that could be read.
  bool is_background = false;  ///< A stored request, whose client does not wait.
  std::chrono::system_clock::time_point began_at{};
  Steady began{};
  Steady ended{};
  std::array<Span, spans_max> spans{};
  std::size_t span_count = 0;
  std::uint32_t spans_left_out = 0;

  std::string method{};
  std::string route{};  ///< Its name or pattern, never a path: that may contain names of people.
  std::string operation_ref{};
  std::string_view reserved_as{};  ///< Static texts; empty: it did not happen.
  std::string_view settled_as{};
  int status = 0;  ///< Of the answer to the client; 0: there was none.
  /// The request whose stored answer this one got.
  std::optional<TraceContext> ran_in{};
};

}  // namespace idem::tracing
