#include "core/store_clock.hpp"

#include <algorithm>
#include <fstream>

namespace idem {
namespace {

StoreTime base_of(const HostClock& host, Millis uptime, const std::optional<ClockMark>& last) {
  if (!last) return host.wall();
  const bool same_boot = !host.boot_id.empty() && host.boot_id == last->boot_id;
  // An uptime behind the mark's is another time namespace or a restored snapshot: not comparable.
  if (same_boot && uptime >= last->uptime) return last->store + (uptime - last->uptime);
  return std::max(host.wall(), last->store);
}

}  // namespace

HostClock this_host() {
  HostClock host;
  host.wall = [] { return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now()); };
  host.uptime = [] { return MonotonicClock::now().time_since_epoch(); };
  std::ifstream("/proc/sys/kernel/random/boot_id") >> host.boot_id;
  return host;
}

StoreClock::StoreClock(HostClock host, const std::optional<ClockMark>& last)
    : host_(std::move(host)),
      base_uptime_(host_.uptime()),
      base_(base_of(host_, base_uptime_, last)) {}

StoreTime StoreClock::now() const {
  return base_ + std::max(Millis::zero(), host_.uptime() - base_uptime_);
}

ClockMark StoreClock::mark() const {
  const Millis uptime = std::max(base_uptime_, host_.uptime());
  return {base_ + (uptime - base_uptime_), uptime, host_.boot_id};
}

}  // namespace idem
