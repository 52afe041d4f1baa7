#pragma once

#include "metrics/registry.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace idem::metrics {

/// The counters of a process at one moment, as far as samples need them.
struct Totals {
  std::array<std::uint64_t, outcome_count> reserves{};
  std::uint64_t answers = 0;
  std::uint64_t server_errors = 0;  ///< Of `answers`: 5xx.
  std::uint64_t store_errors = 0;
  HistogramSum reserve{};
  HistogramSum settle{};
  HistogramSum upstream{};
};

/// What the store and the process have at one moment. None: it is not known now.
struct Levels {
  bool store_answers = true;
  std::optional<std::uint64_t> unknown{};
  std::optional<std::int64_t> oldest_unknown_seconds{};
  std::optional<std::uint64_t> waiting_messages{};
  std::optional<std::int64_t> oldest_message_seconds{};
  std::optional<std::uint64_t> dead_letters{};
  std::optional<std::int64_t> reap_seconds{};
};

/// What happened in one span of time.
struct Sample {
  std::chrono::system_clock::time_point end{};
  std::chrono::milliseconds length{};
  std::uint64_t requests = 0;  ///< Answered.
  std::uint64_t server_errors = 0;
  std::uint64_t store_errors = 0;
  std::array<std::uint64_t, outcome_count> reserves{};
  /// Mean of what the store adds to a first request: its answer to the reserve, and the write that
  /// makes the outcome durable. None: there was none.
  std::optional<double> added_ms{};
  std::optional<double> reserve_p99_ms{};
  std::optional<double> upstream_p50_ms{};
  /// At its end; of a long span the worst.
  Levels levels{};
};

/// The samples of the last hour and the last day of one process, in memory. One thread at a time.
class Samples {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// `began`: from when all counters count.
  explicit Samples(Time began) : hour_{began, {}, {}, {}}, day_{began, {}, {}, {}} {}

  /// Ends the running short span, and with each limits::samples_short_per_long-th the long one.
  void add(const Totals& totals, const Levels& levels, Time now);
  /// Of the last hour, the oldest first; the last is the running one up to `now`.
  std::vector<Sample> hour(const Totals& totals, const Levels& levels, Time now) const;
  /// The same of the last day.
  std::vector<Sample> day(const Totals& totals, const Levels& levels, Time now) const;

 private:
  struct Ring {
    Time since;     ///< Where the running span begins.
    Totals before;  ///< What had been counted then.
    Levels worst;   ///< Of the running span so far.
    std::deque<Sample> ended;
  };
  static Sample running(const Ring& ring, const Totals& totals, const Levels& levels, Time now);
  static void end(Ring& ring, const Totals& totals, const Levels& levels, Time now,
                  std::size_t most);
  static std::vector<Sample> all(const Ring& ring, const Totals& totals, const Levels& levels,
                                 Time now);

  Ring hour_;
  Ring day_;
  std::size_t short_ones_ = 0;
};

}  // namespace idem::metrics
