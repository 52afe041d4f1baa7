#include "tracing/otlp.hpp"

#include "core/bytes/json_string.hpp"
#include "json/value.hpp"

#include <idem/record.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace idem::tracing {
namespace {

// Numbers of SpanKind and StatusCode in opentelemetry/proto/trace/v1/trace.proto.
constexpr int kind_internal = 1;
constexpr int kind_server = 2;
constexpr int kind_client = 3;
constexpr int kind_consumer = 5;
constexpr int code_error = 2;

/// Writes one span. A text is a member name or a value that needs no escape, unless it is quoted.
class SpanWriter {
 public:
  SpanWriter(std::string& out, const TraceId& trace, const SpanId& id) : out_(out) {
    out_ += R"({"traceId":")";
    out_ += to_hex(trace.bytes);
    out_ += R"(","spanId":")";
    out_ += to_hex(id.bytes);
    out_ += '"';
  }
  SpanWriter(const SpanWriter&) = delete;
  SpanWriter& operator=(const SpanWriter&) = delete;
  ~SpanWriter() { out_ += '}'; }

  void parent(const SpanId& id) {
    out_ += R"(,"parentSpanId":")";
    out_ += to_hex(id.bytes);
    out_ += '"';
  }
  void name(std::string_view text) {
    out_ += R"(,"name":)";
    append_json_string(out_, text);
  }
  void kind(int number) { fmt::format_to(std::back_inserter(out_), R"(,"kind":{})", number); }
  void time(const Trace& trace, Steady began, Steady ended) {
    const auto at = [&trace](Steady moment) {
      const auto began_at = trace.began_at.time_since_epoch();
      return std::chrono::nanoseconds(began_at + (moment - trace.began)).count();
    };
    fmt::format_to(std::back_inserter(out_), R"(,"startTimeUnixNano":"{}","endTimeUnixNano":"{}")",
                   at(began), at(ended));
  }
  void error(std::string_view message) {
    fmt::format_to(std::back_inserter(out_), R"(,"status":{{"code":{},"message":"{}"}})",
                   code_error, message);
  }
  void link(const TraceContext& to) {
    fmt::format_to(std::back_inserter(out_), R"(,"links":[{{"traceId":"{}","spanId":"{}"}}])",
                   to_hex(to.trace.bytes), to_hex(to.span.bytes));
  }

  void begin_attributes() {
    out_ += R"(,"attributes":[)";
    is_first_ = true;
  }
  void end_attributes() { out_ += ']'; }
  void attribute(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    begin(key);
    out_ += R"("stringValue":)";
    append_json_string(out_, value);
    out_ += "}}";
  }
  void attribute(std::string_view key, int value) {
    if (value == 0) return;
    begin(key);
    // A 64-bit number is a text in this encoding.
    fmt::format_to(std::back_inserter(out_), R"("intValue":"{}"}}}})", value);
  }

 private:
  void begin(std::string_view key) {
    if (!std::exchange(is_first_, false)) out_ += ',';
    out_ += R"({"key":")";
    out_ += key;
    out_ += R"(","value":{)";
  }

  std::string& out_;
  bool is_first_ = true;
};

bool is_failure(const Trace& trace) { return trace.status == 0 || trace.status >= 500; }

void append_own(std::string& out, const Trace& trace) {
  SpanWriter span(out, trace.own.trace, trace.own.span);
  if (trace.parent) span.parent(*trace.parent);
  span.name(trace.route.empty() ? trace.method : trace.method + " " + trace.route);
  span.kind(trace.is_background ? kind_consumer : kind_server);
  span.time(trace, trace.began, trace.ended);
  span.begin_attributes();
  span.attribute("http.request.method", trace.method);
  span.attribute("http.route", trace.route);
  span.attribute("http.response.status_code", trace.status);
  span.attribute("idem.operation_ref", trace.operation_ref);
  span.attribute("idem.reserve", trace.reserved_as);
  span.attribute("idem.ending", trace.settled_as);
  span.attribute("idem.spans_left_out", static_cast<int>(trace.spans_left_out));
  span.end_attributes();
  if (trace.ran_in) span.link(*trace.ran_in);
  if (trace.settled_as == "unknown") {
    span.error("outcome unknown");
  } else if (is_failure(trace) && !trace.is_background) {
    span.error("no answer, or one of status 5xx");
  }
}

void append_phase(std::string& out, const Trace& trace, const Span& part) {
  SpanWriter span(out, trace.own.trace, part.id);
  span.parent(trace.own.span);
  span.name(name_of(part.phase));
  const bool calls = part.phase != Phase::fingerprint && part.phase != Phase::wait;
  span.kind(calls ? kind_client : kind_internal);
  span.time(trace, part.began, part.ended);
  span.begin_attributes();
  if (part.phase == Phase::dispatch) {
    span.attribute("http.request.method", trace.method);
    span.attribute("http.response.status_code", part.status);
  }
  span.end_attributes();
  if (part.has_failed) span.error("failed");
}

}  // namespace

std::string to_otlp(std::span<const std::unique_ptr<Trace>> traces, const Sender& sender) {
  std::string out = R"({"resourceSpans":[{"resource":{"attributes":[)";
  const auto attribute = [&out](std::string_view key, const std::string& value, bool is_last) {
    out += fmt::format(R"({{"key":"{}","value":{{"stringValue":)", key);
    append_json_string(out, value);
    out += is_last ? "}}" : "}},";
  };
  attribute("service.name", sender.service, false);
  attribute("service.version", sender.version, false);
  attribute("service.instance.id", sender.instance, true);
  out += R"(]},"scopeSpans":[{"scope":{"name":"idem","version":)";
  append_json_string(out, sender.version);
  out += R"(},"spans":[)";
  bool is_first = true;
  for (const auto& trace : traces) {
    if (!std::exchange(is_first, false)) out += ',';
    append_own(out, *trace);
    for (const Span& part : std::span(trace->spans).first(trace->span_count)) {
      out += ',';
      append_phase(out, *trace, part);
    }
  }
  out += "]}]}]}";
  return out;
}

std::size_t spans_of(std::span<const std::unique_ptr<Trace>> traces) noexcept {
  std::size_t count = 0;
  for (const auto& trace : traces) count += 1 + trace->span_count;
  return count;
}

std::uint64_t refused_spans(std::string_view answer) {
  const auto parsed = json::parse(answer);
  const auto* partial = parsed ? parsed->find("partialSuccess") : nullptr;
  const auto* count = partial != nullptr ? partial->find("rejectedSpans") : nullptr;
  if (count == nullptr) return 0;
  // Collectors write a 64-bit number as a text, as the encoding says, or as a number.
  if (const auto* number = std::get_if<std::int64_t>(&count->is)) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, *number));
  }
  std::uint64_t read = 0;
  if (const auto* text = std::get_if<std::string>(&count->is)) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), read);
    if (error != std::errc{} || end != text->data() + text->size()) return 0;
  }
  return read;
}

}  // namespace idem::tracing
