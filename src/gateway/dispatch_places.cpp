#include "gateway/dispatch_places.hpp"

#include "core/backoff.hpp"

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

bool DispatchPlaces::take(const Route& route, const std::string& scope) {
  const auto name = name_of(route);
  const auto found = routes_.find(name);
  if (found != routes_.end()) {
    if (found->second.all >= route.async_running_max) return false;
    const auto of_scope = found->second.by_scope.find(scope);
    const bool has_some = of_scope != found->second.by_scope.end();
    if (has_some && of_scope->second >= route.async_tenant_max) return false;
  }
  Taken& places = found != routes_.end() ? found->second : routes_[name];
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
