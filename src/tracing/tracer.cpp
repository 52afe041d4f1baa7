#include "tracing/tracer.hpp"

#include <idem/fingerprint.hpp>
#include <idem/trace_limits.hpp>

#include <iterator>
#include <span>
#include <utility>

namespace idem::tracing {
namespace {

template <std::size_t N>
void put(std::array<std::uint8_t, N>& bytes, std::size_t at, std::uint64_t number) noexcept {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::uint8_t>(number >> (8 * i));
}

std::mt19937_64 seeded() {
  std::array<std::uint8_t, 64> bytes{};
  random_bytes(bytes);
  std::seed_seq seed(bytes.begin(), bytes.end());
  return std::mt19937_64(seed);
}

}  // namespace

std::string_view name_of(Phase phase) noexcept {
  static constexpr std::array<std::string_view, phase_count> names{
      "fingerprint", "reserve", "wait", "mark", "dispatch", "settle"};
  return names[static_cast<std::size_t>(phase)];
}

void Tracer::finished(std::unique_ptr<Trace> trace) {
  const std::size_t spans = trace->span_count + 1;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < limits::traces_waiting_max) {
      waiting_.push_back(std::move(trace));
      return;
    }
  }
  counts_->add(metrics::Spanned::queue_full, spans);
}

std::vector<std::unique_ptr<Trace>> Tracer::take(std::size_t most) {
  std::vector<std::unique_ptr<Trace>> taken;
  const std::lock_guard lock(mutex_);
  if (waiting_.size() <= most) {
    taken.swap(waiting_);
    return taken;
  }
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(most);
  taken.assign(std::move_iterator(waiting_.begin()), std::move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

Ids::Ids() : random_(seeded()) {}

TraceId Ids::trace() {
  TraceId id;
  put(id.bytes, 0, random_());
  put(id.bytes, 8, random_());
  id.bytes[0] |= id.bytes == TraceId{}.bytes ? 1 : 0;  // Zero is no id.
  return id;
}

SpanId Ids::span() {
  SpanId id;
  put(id.bytes, 0, random_());
  id.bytes[0] |= id.bytes == SpanId{}.bytes ? 1 : 0;
  return id;
}

RequestTrace& RequestTrace::operator=(RequestTrace&& other) noexcept {
  if (this == &other) return *this;
  finish();
  tracer_ = other.tracer_;
  ids_ = other.ids_;
  trace_ = std::move(other.trace_);
  return *this;
}

void RequestTrace::begin(Tracer& tracer, Ids& ids, std::string_view traceparent) {
  tracer_ = &tracer;
  ids_ = &ids;
  trace_ = std::make_unique<Trace>();
  const auto parent = parse_traceparent(traceparent);
  const Sampling& sampling = tracer.sampling();
  auto& own = trace_->own;
  own.trace = parent ? parent->trace : ids.trace();
  own.span = ids.span();
  own.is_sampled =
      parent && sampling.follows_parent ? parent->is_sampled : is_among(own.trace, sampling.one_in);
  trace_->keeps_state = parent.has_value();
  if (parent) trace_->parent = parent->span;
  if (!own.is_sampled) return;
  trace_->began_at = std::chrono::system_clock::now();
  trace_->began = std::chrono::steady_clock::now();
}

void RequestTrace::begin(Phase phase) {
  if (!is_recorded()) return;
  if (trace_->span_count == Trace::spans_max) {
    ++trace_->spans_left_out;
    return;
  }
  trace_->spans[trace_->span_count++] = {
      .phase = phase, .id = ids_->span(), .began = std::chrono::steady_clock::now()};
}

namespace {

template <class Of>
auto open_span(Of& trace, Phase phase) noexcept -> decltype(trace.spans.data()) {
  for (std::size_t i = trace.span_count; i-- > 0;) {
    if (trace.spans[i].phase == phase && trace.spans[i].is_open) return &trace.spans[i];
  }
  return nullptr;
}

}  // namespace

void RequestTrace::end(Phase phase, bool has_failed, int status) {
  if (!is_recorded()) return;
  Span* const span = open_span(*trace_, phase);
  if (span == nullptr) return;
  span->ended = std::chrono::steady_clock::now();
  span->is_open = false;
  span->has_failed = has_failed;
  span->status = status;
}

std::optional<Outgoing> RequestTrace::outgoing() const noexcept {
  if (!trace_) return std::nullopt;
  Outgoing out{trace_->own, trace_->keeps_state};
  if (!out.parent.is_sampled) {
    // Nobody would find our span: the caller stays the parent.
    if (trace_->parent) out.parent.span = *trace_->parent;
  } else if (const Span* const dispatch = open_span(*trace_, Phase::dispatch)) {
    out.parent.span = dispatch->id;
  }
  return out;
}

void RequestTrace::answered(int status) {
  if (!is_recorded() || trace_->ended != Steady{}) return;
  trace_->status = status;
  trace_->ended = std::chrono::steady_clock::now();
}

void RequestTrace::finish() noexcept {
  if (!is_recorded()) return;
  const auto now = std::chrono::steady_clock::now();
  if (trace_->ended == Steady{}) trace_->ended = now;
  for (Span& span : std::span(trace_->spans).first(trace_->span_count)) {
    if (!std::exchange(span.is_open, false)) continue;
    span.ended = now;
    span.has_failed = true;
  }
  tracer_->finished(std::move(trace_));
}

}  // namespace idem::tracing
