#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::metrics {

/// Which tenants met their quota since the start of the process: only the store knows how much of
/// it a tenant uses, and only inside a reserve. Safe from any thread.
class QuotaRefusals {
 public:
  using Clock = std::chrono::system_clock;

  struct Tenant {
    std::optional<std::string> scope{};  ///< None: all without a row of their own.
    std::uint64_t refused = 0;
    Clock::time_point last{};
  };
  struct Report {
    Clock::time_point since{};
    std::vector<Tenant> tenants{};  ///< The most refusals first.
  };

  /// A new key of this scope was refused.
  void note(std::string_view scope);
  Report report() const;

 private:
  const Clock::time_point since_ = Clock::now();
  mutable std::mutex mutex_;
  std::map<std::string, Tenant, std::less<>> tenants_;  ///< limits::metric_tenants_max at most.
  Tenant others_;
};

}  // namespace idem::metrics
