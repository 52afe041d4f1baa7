#pragma once

#include "core/transitions/quota.hpp"
#include "store/redis/retrying_client.hpp"

/// The scopes' usage of their quotas, as far as this process knows it: the buckets' counters, read
/// from time to time, plus the steps that this process has begun since. Each bucket counts in the
/// step that writes the record, so no change is lost. This process sees other processes' records at
/// its next reading only, and counts a rate for itself alone.
namespace idem::redis {

class UsageLedger {
 public:
  UsageLedger(RetryingClient& client, const Names& names) : client_(client), names_(names) {}

  /// Reads the buckets' counters if the last reading is too old: the nearer to the quota, the
  /// sooner. Of several callers about an unread scope one reads, and all wait.
  Task<std::optional<StoreError>> look_at(std::string scope, Quota quota);
  Usage of(const std::string& scope) const;

  /// Counts a change from its decision on, so that concurrent calls see it.
  void begin(const std::string& scope, const UsageChange& change);
  void end(const std::string& scope, const UsageChange& change, bool is_written);

 private:
  struct Entry {
    Usage usage{};
    UsageChange written{};  ///< Sum of all written changes, since this entry exists.
    UsageChange begun{};    ///< Sum of all begun changes, without those that failed.
    MonotonicTime read_at{};
    bool is_known = false;
    bool is_reading = false;
  };

  Task<std::optional<StoreError>> read(const std::string& scope);
  static bool is_due(const Entry& entry, const Quota& quota);

  RetryingClient& client_;
  const Names& names_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace idem::redis
