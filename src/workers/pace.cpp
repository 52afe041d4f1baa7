#include "workers/pace.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>

namespace idem::workers {

std::size_t Pace::slice() const noexcept {
  std::size_t size = slice_;
  for (Duration time = limits::lifecycle_patience; time <= behind_ && size < limits::sweep_batch;
       time += limits::lifecycle_patience) {
    size *= 2;
  }
  return std::min(size, limits::sweep_batch);
}

Pace::Duration Pace::rest_after(Duration took, bool full) noexcept {
  if (!full) {
    behind_ /= 2;
    return limits::lifecycle_interval;
  }
  const Duration rest_min =
      std::min<Duration>(slice_ * limits::lifecycle_rest_each, limits::lifecycle_rest_max);
  const Duration rest = std::clamp<Duration>(took, rest_min, limits::lifecycle_rest_max);
  behind_ += took + rest;
  return rest;
}

}  // namespace idem::workers
