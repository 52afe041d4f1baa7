#include "store/embedded/in_common.hpp"

#include <functional>

namespace idem::embedded {

Usage CommonUsage::of(const std::string& scope) {
  const std::lock_guard lock(mutex_);
  return book_.of(scope);
}

void CommonUsage::add(const std::string& scope, const UsageChange& change) {
  const std::lock_guard lock(mutex_);
  book_.add(scope, change);
}

std::unique_lock<std::mutex> CommonUsage::lock(const std::string& scope) {
  return std::unique_lock(admissions_[std::hash<std::string>()(scope) % admissions_.size()]);
}

}  // namespace idem::embedded
