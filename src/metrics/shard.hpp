#pragma once

#include "core/trace/trace_context.hpp"
#include "metrics/outside.hpp"
#include "metrics/routes.hpp"

#include <idem/limits.hpp>
#include <idem/store.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>

/// Counters (protocol.md §21). Each thread counts in its own shard: no locks, and no cache line
/// that two threads write.
namespace idem::metrics {

/// One thread counts, any thread reads. A read value may be slightly old.
class Counter {
 public:
  void add(std::uint64_t more = 1) noexcept {
    // One writer: a load and a store are enough, and cost no locked instruction.
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

using Duration = std::chrono::nanoseconds;

/// Upper ends of the buckets in seconds: from the time of a call to a store in memory to 60 s, the
/// default lease.
inline constexpr std::array bucket_ends{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                        0.25,   0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

/// A recorded request as an example of a bucket (OpenMetrics 1.0, "Exemplars").
struct Exemplar {
  TraceContext span{};
  Duration took{};
  std::chrono::system_clock::time_point at{};
};

class Histogram {
 public:
  static constexpr std::size_t bucket_count = bucket_ends.size() + 1;  ///< The last has no end.
  using Exemplars = std::array<std::optional<Exemplar>, bucket_count>;

  void observe(Duration took) noexcept;
  /// Besides, with the span that shows it.
  void keep_exemplar(const Exemplar& exemplar);
  /// The last of each bucket. Safe from any thread.
  Exemplars exemplars() const;
  std::uint64_t in_bucket(std::size_t index) const noexcept { return buckets_[index].value(); }
  Duration sum() const noexcept { return Duration(sum_.value()); }

 private:
  std::array<Counter, bucket_count> buckets_;
  Counter sum_;
  mutable std::mutex mutex_;  ///< Of `exemplars_`, which only recorded requests write.
  Exemplars exemplars_{};
};

/// A moment that one thread sets and any thread reads.
class Moment {
 public:
  using Point = std::chrono::steady_clock::time_point;

  void set(Point at) noexcept {
    at_.store(at.time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// None: it was never set.
  std::optional<Point> value() const noexcept {
    const auto count = at_.load(std::memory_order_relaxed);
    if (count == none) return std::nullopt;
    return Point(Point::duration(count));
  }

 private:
  static constexpr Point::rep none = std::numeric_limits<Point::rep>::min();
  std::atomic<Point::rep> at_{none};
};

/// The outcome of a reserve.
enum class Outcome : std::uint8_t {
  created,
  replay,
  in_progress,
  key_misuse,
  failed_retry,
  unknown,
  expired,
  quota_exceeded
};
inline constexpr std::size_t outcome_count = 8;
Outcome outcome_of(const ReserveOutcome& outcome) noexcept;
std::string_view name_of(Outcome outcome) noexcept;

enum class Reconciled : std::uint8_t { scheduled, resolved, failed };
inline constexpr std::size_t reconciled_count = 3;
std::string_view name_of(Reconciled result) noexcept;

struct alignas(64) Shard {
  std::array<Counter, outcome_count> reserves;
  std::array<Counter, 3> releases;  ///< By the number of their ReleaseBasis.
  Counter store_errors;
  Counter leases_ended;
  Counter pruned;
  /// Everything that was due for the reaper before this moment is reaped.
  Moment reap_due_since;
  Counter lifecycle_turns;
  std::atomic<std::uint64_t> reconciler_turns{0};  ///< Several threads count.
  Counter damaged;                                 ///< Found by sweeper and reaper.
  std::array<Counter, reconciled_count> reconciled;
  Counter contradictions;
  Counter foreign_events;
  Counter personal_keys;
  /// By the place that Tenants gave; the first counts all others.
  std::array<Counter, limits::metric_tenants_max + 1> duplicates;
  std::array<Counter, forwarded_count> forwarded;
  std::array<Counter, not_reached_count> not_reached;
  std::array<Counter, authorized_count> authorized;
  /// Answers to clients, by the place that Routes gave and the place of their status.
  std::array<std::array<Counter, status_places>, limits::metric_routes_max + 1> answers;
  Histogram reserve;
  Histogram settle;
  Histogram upstream;
  Histogram request;
};

}  // namespace idem::metrics
