#include "gateway/background/dispatch_places.hpp"

#include "core/exchange/backoff.hpp"

#include <idem/worker_limits.hpp>

namespace idem::gateway {

std::string DispatchPlaces::name_of(const Route& route) {
  if (!route.name.empty()) return route.name;
  std::string name = " ";  // No route is called that.
  for (const auto& method : route.methods) name += method + " ";
  return name + route.path.text();
}

std::string DispatchPlaces::key_of(const RecordId& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

std::optional<std::size_t> DispatchPlaces::taken_by(const Route& route,
                                                    const std::string& scope) const {
  const auto found = routes_.find(name_of(route));
  if (found == routes_.end()) return 0;
  if (found->second.all >= route.async_running_max) return std::nullopt;
  const auto of_scope = found->second.by_scope.find(scope);
  if (of_scope == found->second.by_scope.end()) return 0;
  if (of_scope->second >= route.async_tenant_max) return std::nullopt;
  return of_scope->second;
}

bool DispatchPlaces::take(const Route& route, const std::string& scope) {
  if (!taken_by(route, scope)) return false;
  Taken& places = routes_[name_of(route)];
  ++places.all;
  ++places.by_scope[scope];
  ++taken_;
  return true;
}

void DispatchPlaces::give_back(const Route& route, const std::string& scope) {
  const auto found = routes_.find(name_of(route));
  const auto of_scope = found->second.by_scope.find(scope);
  if (--of_scope->second == 0) found->second.by_scope.erase(of_scope);
  if (--found->second.all == 0) routes_.erase(found);
  --taken_;
}

Millis DispatchPlaces::rest(const RecordId& id, double dice) const {
  const auto found = releases_.find(key_of(id));
  const int before = found == releases_.end() ? 0 : found->second;
  return backoff(before + 1, limits::async_rest_first, limits::async_rest_max, dice);
}

void DispatchPlaces::released(const RecordId& id) {
  if (releases_.size() >= limits::async_rests_kept_max) releases_.clear();
  ++releases_[key_of(id)];
}

}  // namespace idem::gateway
