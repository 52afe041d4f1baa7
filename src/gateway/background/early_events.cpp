#include "gateway/background/early_events.hpp"

#include <idem/worker_limits.hpp>

namespace idem::gateway {

StoreTime EarlyEvents::first_seen(const std::string& name, StoreTime now) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = first_seen_.try_emplace(name, now);
  const StoreTime first = entry->second;
  if (is_new) oldest_first_.push_back(name);
  if (oldest_first_.size() > limits::early_events_max) {
    first_seen_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
  return first;
}

}  // namespace idem::gateway
