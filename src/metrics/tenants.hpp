#pragma once

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace idem::metrics {

/// How a tenant is called in a metric. A scope may be a name that nobody outside should read.
enum class TenantLabel : std::uint8_t {
  off,     ///< All are one.
  digest,  ///< A keyed digest of the scope: the same in all of a store's gateways.
  name     ///< The scope itself; a digest where that is `others` or no text.
};

/// The label of all who have no series of their own.
inline constexpr std::string_view others = "other";

/// The tenants that have a time series of their own: the first limits::metric_tenants_max of which
/// a duplicate was seen. Their number never shrinks, so that no counter ever goes back; the others
/// share one. Safe from any thread; takes a lock only when it meets a new one.
class Tenants {
 public:
  Tenants(TenantLabel kind, const Secret& secret) : kind_(kind), secret_(secret) {}

  /// Where to count it: 0 is the place of all that have none of their own.
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
