#include "core/record/store_clock.hpp"

#include "core/record/clock_shift.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <fstream>

namespace idem {
namespace {

// An uptime below the mark's means another time namespace or a restored snapshot: not comparable.
bool is_same_boot(const HostClock& host, Millis uptime, const ClockMark& last) {
  return !host.boot_id.empty() && host.boot_id == last.boot_id && uptime >= last.uptime;
}

StoreTime exact_base(Millis uptime, const ClockMark& last) {
  return last.store + (uptime - last.uptime);
}

StoreTime base_of(const HostClock& host, Millis uptime, const std::optional<ClockMark>& last) {
  if (!last) return host.wall();
  // The uptime since the mark is exact, unless the mark is not what was written. The wall clock
  // bounds what a wrong one can do; it may have been set back, so never to before the mark.
  if (is_same_boot(host, uptime, *last)) {
    const StoreTime latest = std::max(last->store, host.wall() + limits::store_clock_jump_max);
    return std::min(exact_base(uptime, *last), latest);
  }
  // After another boot there is only the wall clock, which may be wrong by years (an RTC before its
  // first synchronisation). The store clock never follows it back, and follows it forward only up
  // to a bound: lagging behind only delays expiry, while a jump would end every replay and
  // tombstone at once.
  return std::clamp(host.wall(), last->store, last->store + limits::store_clock_jump_max);
}

}  // namespace

StoreTime wall_time() noexcept {
  const auto now = std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
  return now + clock_shift().wall;
}

Millis clock_ahead(StoreTime before, StoreTime there, StoreTime after) noexcept {
  if (there < before) return before - there;
  return there > after ? after - there : Millis(0);
}

std::function<StoreTime()> moved_server_clock() {
  if (!clock_shift().by_test) return {};
  return [] {
    const ClockShift shift = clock_shift();
    return wall_time() - shift.wall + shift.uptime;
  };
}

Millis uptime() noexcept { return MonotonicClock::now().time_since_epoch() + clock_shift().uptime; }

HostClock this_host() {
  HostClock host;
  host.wall = wall_time;
  host.uptime = uptime;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> host.boot_id;
  return host;
}

StoreClock::StoreClock(HostClock host, const std::optional<ClockMark>& last)
    : host_(std::move(host)),
      base_uptime_(host_.uptime()),
      base_(base_of(host_, base_uptime_, last)),
      was_restarted_(last && !is_same_boot(host_, base_uptime_, *last)) {
  if (!last) return;
  if (!was_restarted_) {
    has_lost_time_ = base_ < exact_base(base_uptime_, *last);
    return;
  }
  const StoreTime wall = host_.wall();
  has_lost_time_ = wall < last->store || wall > last->store + limits::store_clock_jump_max;
}

StoreTime StoreClock::now() const {
  return base_ + std::max(Millis::zero(), host_.uptime() - base_uptime_);
}

ClockMark StoreClock::mark() const {
  const Millis uptime = std::max(base_uptime_, host_.uptime());
  return {base_ + (uptime - base_uptime_), uptime, host_.boot_id};
}

}  // namespace idem
