#pragma once

#include "metrics/outside.hpp"
#include "tracing/settings.hpp"
#include "tracing/trace.hpp"

#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace idem::tracing {

/// The finished requests that wait to be sent. Bounded: what does not fit is dropped and counted,
/// and no request waits. Safe from any thread.
class Tracer {
 public:
  Tracer(Sampling sampling, std::shared_ptr<metrics::SpanCounts> counts)
      : sampling_(sampling), counts_(std::move(counts)) {}

  const Sampling& sampling() const noexcept { return sampling_; }
  void finished(std::unique_ptr<Trace> trace);
  /// The oldest ones, at most `most`.
  std::vector<std::unique_ptr<Trace>> take(std::size_t most);
  metrics::SpanCounts& counts() noexcept { return *counts_; }

 private:
  Sampling sampling_;
  std::shared_ptr<metrics::SpanCounts> counts_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Trace>> waiting_;
};

/// Makes ids. One thread's. They need not be secret, but must differ from those of all other
/// processes.
class Ids {
 public:
  Ids();
  TraceId trace();
  SpanId span();

 private:
  std::mt19937_64 random_;
};

/// One request's part: does nothing without a tracer, or where the request is not recorded. One
/// thread's; ends with its destruction.
class RequestTrace {
 public:
  RequestTrace() = default;
  RequestTrace(RequestTrace&&) noexcept = default;
  RequestTrace& operator=(RequestTrace&& other) noexcept;
  ~RequestTrace() { finish(); }

  /// `traceparent`: that of the request; any other text begins a trace.
  void begin(Tracer& tracer, Ids& ids, std::string_view traceparent);

  /// None: there is no tracer.
  const TraceContext* context() const noexcept { return trace_ ? &trace_->own : nullptr; }
  bool is_recorded() const noexcept { return trace_ && trace_->own.is_sampled; }
  /// To note what it did; null unless it is recorded.
  Trace* recorded() noexcept { return is_recorded() ? trace_.get() : nullptr; }

  void begin(Phase phase);
  /// Does nothing where the phase is not open.
  void end(Phase phase, bool has_failed = false, int status = 0);
  /// The parent is the span of the dispatch that is open, else the own. None: there is no tracer.
  std::optional<Outgoing> outgoing() const noexcept;
  /// The answer is about to be sent: later times do not count. Only the first call does something.
  void answered(int status);

 private:
  void finish() noexcept;

  Tracer* tracer_ = nullptr;
  Ids* ids_ = nullptr;
  std::unique_ptr<Trace> trace_;
};

}  // namespace idem::tracing
