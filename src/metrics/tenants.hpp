#pragma once

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace idem::metrics {

/// The label of a tenant in a metric. A scope may be a confidential name.
enum class TenantLabel : std::uint8_t {
  off,     ///< All tenants are counted as one.
  digest,  ///< A keyed digest of the scope: the same in all of a store's gateways.
  name     ///< The scope itself; a digest if that is `others` or no UTF-8.
};

/// The label of all tenants without their own series.
inline constexpr std::string_view others = "other";

/// The tenants with their own time series: the first limits::metric_tenants_max with a duplicate.
/// The others share one. Places never change, so no counter goes back. Safe from any thread; locks
/// only for a new tenant.
class Tenants {
 public:
  Tenants(TenantLabel kind, const Secret& secret) : kind_(kind), secret_(secret) {}

  /// The place that counts this scope. 0: all tenants without their own.
  std::size_t place_of(std::string_view scope);

  /// Places in use, 0 included.
  std::size_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  /// `place` < count().
  std::string_view label(std::size_t place) const noexcept { return tenants_[place].label; }

 private:
  struct Tenant {
    std::size_t hash = 0;
    std::string label;
  };

  std::size_t find(std::size_t hash) const noexcept;
  std::string label_of(std::string_view scope) const;

  const TenantLabel kind_;
  const Secret secret_;
  std::mutex mutex_;
  // Written under the mutex, before the count that makes it visible; never changed after it.
  std::array<Tenant, limits::metric_tenants_max + 1> tenants_{{{0, std::string(others)}}};
  std::atomic<std::size_t> count_{1};
};

}  // namespace idem::metrics
