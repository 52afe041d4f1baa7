#pragma once

#include <idem/record.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace idem::gateway {

/// How often each scope may look operations up: a token bucket each (limits::lookups_...). Safe
/// from any thread.
class LookupLimit {
 public:
  /// Nothing: go on. Otherwise the time until its next look-up.
  std::optional<Millis> take(const std::string& scope, MonotonicTime now);

 private:
  struct Bucket {
    double tokens;
    MonotonicTime at;
  };
  static double tokens_at(const Bucket& bucket, MonotonicTime now) noexcept;
  void forget_rested(MonotonicTime now);

  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;  ///< A scope without one has a full one.
  MonotonicTime forgotten_at_{};
};

}  // namespace idem::gateway
