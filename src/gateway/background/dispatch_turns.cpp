#include "gateway/background/dispatch_turns.hpp"

namespace idem::gateway {

Millis DispatchBacklogs::rest(const std::string& tenant, Millis each, MonotonicTime now,
                              double dice) {
  if (done_at_.size() >= limits::async_backlogs_max) {
    std::erase_if(done_at_, [now](const auto& one) { return one.second <= now; });
    if (done_at_.size() >= limits::async_backlogs_max) done_at_.clear();
  }
  constexpr Millis least = limits::async_put_back_rest;
  constexpr Millis most = limits::async_put_back_rest_max;
  MonotonicTime& done_at = done_at_[tenant];
  done_at = std::min(std::max(done_at, now) + each, now + most);
  const Millis left = done_at - now;
  // Without the dice all requests at a limit would come back at once.
  const bool is_end = left <= least || left >= most;
  const Millis rest = std::max<Millis>(left, least);
  if (!is_end) return rest;
  return rest / 2 + Millis(static_cast<Millis::rep>(dice * static_cast<double>(rest.count()) / 2));
}

}  // namespace idem::gateway
