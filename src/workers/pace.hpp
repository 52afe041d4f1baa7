#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace idem::workers {

/// The result of one pass of sweeper or reaper.
struct Pass {
  std::size_t records = 0;
  std::chrono::milliseconds late{};  ///< How long the record that was due the longest had been due.
};

/// How fast the lifecycle works off due records beside requests. It works in slices too small to
/// delay requests, and rests between them; the rest grows with the time that a slice took, and so
/// with the load of the store. The longer records have been due, the larger the slices and the
/// shorter the rests, so that it keeps up. While the store is idle it works in whole batches
/// without a rest.
class Pace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `slice`: records in a pass while no backlog grows.
  explicit Pace(std::size_t slice) noexcept : slice_(slice) {}

  /// The most records that the next pass may process.
  std::size_t slice(bool is_idle) const noexcept;

  /// How long to rest after a pass for slice(is_idle) records that took `took`.
  Duration rest_after(const Pass& pass, Duration took, bool is_idle) noexcept;

  /// Whether the last pass left due records.
  bool leaves_some() const noexcept { return leaves_some_; }

 private:
  /// By how much a slice grows because of the backlog; 1: there is none.
  double factor() const noexcept;

  std::size_t slice_;
  Duration late_{};  ///< Of the last pass; 0 where it left nothing.
  bool leaves_some_ = false;
};

/// Whether a store has received no call for limits::lifecycle_idle_after.
class Idleness {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// `asked`: Store::asked(), as it is at `now`.
  bool is_idle(std::optional<std::uint64_t> asked, Moment now) noexcept;

 private:
  std::optional<std::uint64_t> asked_{};
  Moment changed_at_{};
};

}  // namespace idem::workers
