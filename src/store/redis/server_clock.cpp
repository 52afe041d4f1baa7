#include "store/redis/server_clock.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

namespace idem::redis {

void ServerClock::observe(StoreTime server, MonotonicTime at) noexcept {
  const Millis offset = server.time_since_epoch() - at.time_since_epoch();
  // A quick reply is more exact than a slow one, for a while: clocks drift.
  constexpr Millis stays_good{10'000};
  const bool is_better = !offset_ || offset >= *offset_ || at - since_ >= stays_good ||
                         *offset_ - offset > limits::redis_clock_slack;
  if (!is_better) return;
  offset_ = offset;
  since_ = at;
}

StoreTime ServerClock::at(MonotonicTime now) const noexcept {
  IDEM_ASSERT(offset_.has_value());
  return StoreTime(now.time_since_epoch() + *offset_);
}

}  // namespace idem::redis
