#pragma once

#include <idem/record.hpp>

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace idem::gateway {

/// Remembers when events first came whose record is not known yet, because a provider gives each
/// repetition a time of its own. Bounded; a forgotten event counts as new. Safe from any thread.
class EarlyEvents {
 public:
  /// `name`: the source's and the event's. `now` where it comes for the first time.
  StoreTime first_seen(const std::string& name, StoreTime now);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, StoreTime> first_seen_;
  std::deque<std::string> oldest_first_;
};

}  // namespace idem::gateway
