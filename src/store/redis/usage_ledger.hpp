#pragma once

#include "core/transitions/quota.hpp"
#include "store/redis/retrying_client.hpp"

/// What scopes have of their quotas, as far as this process knows: what the buckets count, read
/// anew every so often, with what this process itself has begun since. Each bucket counts in the
/// step that writes the record, so that nothing is lost; what other processes admit is seen at the
/// next reading only, and a rate is this process's own.
namespace idem::redis {

class UsageLedger {
 public:
  UsageLedger(RetryingClient& asking, const Names& names) : client_(asking), names_(names) {}

  /// Reads what the buckets count, where that was not done for a while: the nearer to the quota,
  /// the sooner. Of several who ask about a scope that nobody has read one reads, and all wait.
  Task<std::optional<StoreError>> look_at(std::string scope, Quota quota);
  Usage of(const std::string& scope) const;

  /// Counted from the moment in which it is decided, so that those who come meanwhile see it.
  void begin(const std::string& scope, const UsageChange& change);
  void end(const std::string& scope, const UsageChange& change, bool is_written);

 private:
  struct Entry {
    Usage usage{};
    UsageChange written{};  ///< In all, since there is this entry.
    UsageChange begun{};    ///< Likewise, without what came to nothing.
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
