#pragma once

#include "store/redis/retrying_client.hpp"
#include "store/usage_view.hpp"

/// The scopes' usage of their quotas (store/usage_view.hpp), read from the buckets' counters. Each
/// bucket counts in the step that writes the record, so no change is lost.
namespace idem::redis {

class UsageLedger {
 public:
  UsageLedger(RetryingClient& client, const Names& names) : client_(client), names_(names) {}

  /// Reads the buckets' counters if the last reading is too old: the nearer to the quota, the
  /// sooner. Of several callers about an unread scope one reads, and all wait.
  Task<std::optional<StoreError>> look_at(std::string scope, Quota quota);
  Usage of(const std::string& scope) const { return view_.of(scope); }

  void begin(const std::string& scope, const UsageChange& change) { view_.begin(scope, change); }
  void end(const std::string& scope, const UsageChange& change, bool is_written) {
    view_.end(scope, change, is_written);
  }

 private:
  Task<std::optional<StoreError>> read(const std::string& scope);

  RetryingClient& client_;
  const Names& names_;
  UsageView view_;
};

}  // namespace idem::redis
