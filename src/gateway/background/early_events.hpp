#pragma once

#include <idem/record.hpp>

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace idem::gateway {

/// When events were first told of whose record is not known yet: a provider that tells again gives
/// each telling a time of its own. Bounded; what is forgotten is first told once more. Safe from
/// any thread.
class EarlyEvents {
 public:
  /// `name`: the source's and the event's. `now` where it is told for the first time.
  StoreTime first_told(const std::string& name, StoreTime now);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, StoreTime> told_;
  std::deque<std::string> oldest_first_;
};

}  // namespace idem::gateway
