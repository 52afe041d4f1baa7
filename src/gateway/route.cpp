#include "gateway/route.hpp"

#include "core/naming/shadow_names.hpp"

#include <algorithm>
#include <iterator>

namespace idem::gateway {

bool Route::covers(const Route& other) const noexcept {
  const bool all_methods =
      methods.empty() ||
      (!other.methods.empty() && std::ranges::all_of(other.methods, [&](const auto& method) {
        return std::ranges::find(methods, method) != methods.end();
      }));
  return all_methods && path.covers(other.path);
}

bool Route::needs_key(std::string_view method) const noexcept {
  return require_key && (method == "POST" || method == "PATCH");
}

bool Route::ever_needs_key() const noexcept {
  if (methods.empty()) return require_key;
  return std::ranges::any_of(methods, [&](const auto& method) { return needs_key(method); });
}

std::string Route::operation(std::string_view method, std::string_view path_sent) const {
  return name.empty() ? own_operation(method, path_sent) : name;
}

std::vector<RouteName> names_of(const std::vector<Route>& routes) {
  std::vector<RouteName> names;
  names.reserve(routes.size());
  for (const Route& route : routes) {
    names.push_back({route.methods, route.path.text(), route.name, route.formerly});
  }
  // A last route without a name that matches everything is left out: it names nothing.
  const RouteName rest{.pattern = "/{rest...}"};
  while (!names.empty() && names.back() == rest) names.pop_back();
  return names;
}

RouteTable::RouteTable(std::vector<Route> routes, Route rest) : routes_(std::move(routes)) {
  rest.path = *PathPattern::parse("/{rest...}");
  rest.methods.clear();
  routes_.push_back(std::move(rest));
  for (const Route& route : routes_) {
    former_.push_back(FormerNames::parse(route.formerly).value_or(FormerNames{}));
  }
}

void RouteTable::count_by(const std::function<std::size_t(const std::string& label)>& place_of) {
  for (Route& route : routes_) {
    route.counted_at = place_of(route.label());
  }
}

std::vector<std::string> RouteTable::former_operations(const Route& route, std::string_view method,
                                                       std::string_view path) const {
  return former_[static_cast<std::size_t>(&route - routes_.data())].operations(method, path);
}

const Route* RouteTable::route_of(const std::string& operation, std::string_view method,
                                  std::string_view path) const {
  const Route& matched = find(method, path);
  if (matched.operation(method, path) == operation) return &matched;
  const auto former = former_operations(matched, method, path);
  if (std::ranges::find(former, operation) != former.end()) return &matched;
  const auto named =
      std::ranges::find_if(routes_, [&](const Route& route) { return route.name == operation; });
  return named == routes_.end() ? nullptr : &*named;
}

const Route* RouteTable::route_of(const std::string& operation) const {
  const auto is_its = [&](const Route& route) {
    return route.name == operation ||
           std::ranges::find(route.formerly, operation) != route.formerly.end();
  };
  const auto named = std::ranges::find_if(routes_, is_its);
  if (named != routes_.end()) return &*named;
  const auto blank = operation.find(" /");
  if (blank == operation.npos) return nullptr;
  const std::string_view text = operation;
  return &find(text.substr(0, blank), text.substr(blank + 1));
}

std::string RouteTable::provider_of(const Record& record) const {
  if (!record.provider.empty()) return record.provider;
  const Route* const route = route_of(record.operation);
  return route == nullptr ? std::string() : route->reconcile;
}

std::vector<std::string> RouteTable::naming_parts(const std::string& operation) const {
  if (is_shadow_operation(operation)) {
    auto parts = naming_parts(operation.substr(shadow_prefix.size()));
    parts.emplace_back();  // With key_scope tenant.
    std::ranges::transform(parts, parts.begin(), shadow_naming_part);
    return parts;
  }
  std::vector<std::string> parts{operation};
  if (const auto own = split_own_operation(operation)) {
    const Route& route = find(own->first, own->second);
    parts.push_back(route.operation(own->first, own->second));
    std::ranges::copy(former_operations(route, own->first, own->second), std::back_inserter(parts));
    return parts;
  }
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].name != operation) continue;
    std::ranges::copy(former_[i].fixed(), std::back_inserter(parts));
  }
  return parts;
}

const Route& RouteTable::find(std::string_view method, std::string_view path) const noexcept {
  for (const auto& route : routes_) {
    const bool method_fits =
        route.methods.empty() || std::ranges::find(route.methods, method) != route.methods.end();
    if (method_fits && route.path.matches(path)) return route;
  }
  return routes_.back();
}

}  // namespace idem::gateway
