#pragma once

#include <chrono>
#include <cstddef>

namespace idem::workers {

/// How fast records that are due are worked off beside requests: in slices of which none is felt,
/// with rests between them that grow with what a slice takes, and so with what else the store does.
class Pace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// Of how many records the next pass may be.
  std::size_t slice() const noexcept;

  /// After a pass that took so long. `full`: more is due. How long to rest before the next one.
  Duration rest_after(Duration took, bool full) noexcept;

 private:
  Duration behind_{};  ///< For how long every pass was full.
};

}  // namespace idem::workers
