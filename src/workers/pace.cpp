#include "workers/pace.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <cmath>

namespace idem::workers {

double Pace::factor() const noexcept {
  if (late_ <= limits::lifecycle_late_small) return 1;
  const std::chrono::duration<double> too_late = late_ - limits::lifecycle_late_small;
  const double doublings = too_late / limits::lifecycle_late_doubling;
  return std::exp2(std::min(doublings, limits::lifecycle_doublings_max));
}

std::size_t Pace::slice(bool is_idle) const noexcept {
  if (is_idle) return limits::sweep_batch;
  const double most = static_cast<double>(slice_) * factor();
  return most < limits::sweep_batch ? static_cast<std::size_t>(most) : limits::sweep_batch;
}

Pace::Duration Pace::rest_after(const Pass& pass, Duration took, bool is_idle) noexcept {
  leaves_some_ = pass.records >= slice(is_idle) ||
                 (pass.records > 0 && pass.late >= limits::lifecycle_late_more);
  late_ = leaves_some_ ? Duration(pass.late) : Duration(0);
  if (!leaves_some_) return limits::lifecycle_interval;
  if (is_idle) return Duration(0);
  const Duration rest_min =
      std::min<Duration>(slice_ * limits::lifecycle_rest_each, limits::lifecycle_rest_max);
  const Duration rest = std::clamp<Duration>(took, rest_min, limits::lifecycle_rest_max);
  // The part of the factor by which a whole batch cannot grow any more shortens the rest.
  const double shorter =
      std::max(1.0, static_cast<double>(slice_) * factor() / limits::sweep_batch);
  return Duration(static_cast<Duration::rep>(static_cast<double>(rest.count()) / shorter));
}

bool Idleness::is_idle(std::optional<std::uint64_t> asked, Moment now) noexcept {
  if (!asked) return false;
  if (asked_ != asked) {
    asked_ = asked;
    changed_at_ = now;
  }
  return now - changed_at_ >= limits::lifecycle_idle_after;
}

}  // namespace idem::workers
