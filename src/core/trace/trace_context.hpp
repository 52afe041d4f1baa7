#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Who called whom on behalf of one request (W3C Trace Context, Level 1). Pure.
namespace idem {

struct TraceId {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const TraceId&, const TraceId&) = default;
};
struct SpanId {
  std::array<std::uint8_t, 8> bytes{};
  friend bool operator==(const SpanId&, const SpanId&) = default;
};

/// One span of a trace, as its header names it.
struct TraceContext {
  TraceId trace{};
  SpanId span{};
  bool is_sampled = false;  ///< Its spans are recorded.
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

inline constexpr std::string_view traceparent_field = "traceparent";
inline constexpr std::string_view tracestate_field = "tracestate";

/// The value of a traceparent field (§3.2). None: it has another form, an invalid id or version ff;
/// then the request begins a trace of its own. Of a version that is newer than 00 it reads the part
/// that version 00 has (§4.3).
std::optional<TraceContext> parse_traceparent(std::string_view value) noexcept;

/// The same in version 00.
std::string traceparent_of(const TraceContext& context);

/// Whether a trace is among one in `one_in` (at least 1). Every process that asks with the same
/// number gets the same answer about a trace: it depends on the random part of its id alone.
bool is_among(const TraceId& trace, std::uint64_t one_in) noexcept;

}  // namespace idem
