#include "metrics/quota_refusals.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::metrics {

void QuotaRefusals::note(std::string_view scope) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  auto found = tenants_.find(scope);
  if (found == tenants_.end() && tenants_.size() < limits::metric_tenants_max) {
    std::string name(scope);
    Tenant tenant{.scope = name, .refused = 0, .last = now};
    found = tenants_.emplace(std::move(name), std::move(tenant)).first;
  }
  Tenant& counted = found == tenants_.end() ? others_ : found->second;
  ++counted.refused;
  counted.last = now;
}

QuotaRefusals::Report QuotaRefusals::report() const {
  Report report{.since = since_, .tenants = {}};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [scope, tenant] : tenants_) report.tenants.push_back(tenant);
    if (others_.refused > 0) report.tenants.push_back(others_);
  }
  std::ranges::stable_sort(report.tenants, std::ranges::greater(), &Tenant::refused);
  return report;
}

}  // namespace idem::metrics
