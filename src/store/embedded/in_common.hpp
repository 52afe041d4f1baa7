#pragma once

#include "core/transitions/quota.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace idem::embedded {

/// The usage of all scopes in all shards of one store. Any thread may use it.
class CommonUsage {
 public:
  Usage of(const std::string& scope);
  void add(const std::string& scope, const UsageChange& change);
  /// See RecordTable::lock_usage(). Waits for no more than another shard's step.
  std::unique_lock<std::mutex> lock(const std::string& scope);

 private:
  std::mutex mutex_;
  UsageBook book_;
  /// A scope's by its hash.
  std::array<std::mutex, 64> admissions_;
};

/// What the shards of one store have in common.
struct InCommon {
  std::atomic<Fence> last_fence{0};  ///< No fence above it was granted.
  CommonUsage usage;
};

}  // namespace idem::embedded
