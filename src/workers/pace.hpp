#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace idem::workers {

/// What one pass of sweeper or reaper came to.
struct Pass {
  std::size_t records = 0;
  std::chrono::milliseconds late{};  ///< For how long that had been due which was due the longest.
};

/// How fast records that are due are worked off beside requests: in slices of which none is felt,
/// with rests between them that grow with what a slice takes, and so with what else the store does;
/// in larger ones with shorter rests the longer the records have been due, so that as many are
/// worked off as become due; and in whole batches without a rest while nobody asks for anything.
class Pace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `slice`: of how many records a pass is while nothing stays behind.
  explicit Pace(std::size_t slice) noexcept : slice_(slice) {}

  /// Of how many records the next pass may be.
  std::size_t slice(bool is_idle) const noexcept;

  /// After a pass for slice(is_idle) records that took so long: how long to rest before the next
  /// one.
  Duration rest_after(const Pass& pass, Duration took, bool is_idle) noexcept;

  /// Whether the last pass left something that was due.
  bool leaves_some() const noexcept { return leaves_some_; }

 private:
  /// How many times as many records it is to be as while nothing stays behind.
  double factor() const noexcept;

  std::size_t slice_;
  Duration late_{};  ///< Of the last pass; 0 where it left nothing.
  bool leaves_some_ = false;
};

/// Whether nobody has asked a store for anything for limits::lifecycle_idle_after.
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
