#pragma once

#include <chrono>
#include <cstddef>

namespace idem::workers {

/// How fast records that are due are worked off beside requests: in slices of which none is felt,
/// with rests between them that grow with what a slice takes, and so with what else the store does.
class Pace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `slice`: of how many records a pass is while nothing stays behind.
  explicit Pace(std::size_t slice) noexcept : slice_(slice) {}

  /// Of how many records the next pass may be.
  std::size_t slice() const noexcept;

  /// After a pass that took so long. `full`: more is due. How long to rest before the next one.
  Duration rest_after(Duration took, bool full) noexcept;

 private:
  std::size_t slice_;
  /// For how long every pass was full; halved by each that was not.
  Duration behind_{};
};

}  // namespace idem::workers
