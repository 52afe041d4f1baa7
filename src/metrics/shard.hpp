#pragma once

#include "metrics/outside.hpp"
#include "metrics/routes.hpp"

#include <idem/limits.hpp>
#include <idem/store.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <optional>

/// What is counted (protocol.md §21). Each thread counts in a shard of its own: no locks, and no
/// cache line that two threads write.
namespace idem::metrics {

/// Counted up by one thread, read by any. What is read may be a moment old.
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

/// Upper ends of the buckets in seconds. From what a store in memory takes to the longest lease
/// that one would give; 60 s is the default lease.
inline constexpr std::array bucket_ends{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                        0.25,   0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

class Histogram {
 public:
  static constexpr std::size_t bucket_count = bucket_ends.size() + 1;  ///< The last has no end.

  void observe(Duration took) noexcept;
  std::uint64_t in_bucket(std::size_t index) const noexcept { return buckets_[index].value(); }
  Duration sum() const noexcept { return Duration(sum_.value()); }

 private:
  std::array<Counter, bucket_count> buckets_;
  Counter sum_;
};

/// A moment that one thread sets and any reads.
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

/// What a reserve was answered with.
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
  std::array<Counter, 3> releases;  ///< At the number of their ReleaseBasis.
  Counter store_errors;
  Counter leases_ended;
  Counter pruned;
  /// Nothing that the reaper would take away has been due since before then.
  Moment reap_due_since;
  Counter damaged;  ///< Met by sweeper and reaper.
  std::array<Counter, reconciled_count> reconciled;
  Counter contradictions;
  Counter foreign_events;
  Counter personal_keys;
  /// At the number that Tenants gave; the first is that of all others.
  std::array<Counter, limits::metric_tenants_max + 1> duplicates;
  std::array<Counter, forwarded_count> forwarded;
  std::array<Counter, not_reached_count> not_reached;
  std::array<Counter, authorized_count> authorized;
  /// Answers to clients, at the place that Routes gave and that of their status.
  std::array<std::array<Counter, status_places>, limits::metric_routes_max + 1> answers;
  Histogram reserve;
  Histogram settle;
  Histogram upstream;
  Histogram request;
};

}  // namespace idem::metrics
