#include "core/naming/adopt_routes.hpp"

#include "core/exchange/policy.hpp"
#include "core/naming/route_naming.hpp"
#include "core/naming/shadow_names.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <set>

namespace idem {
namespace {

/// Why retries would not find one of the store's records; none: they find all.
std::optional<std::string> lost_record(const StoredOperations& stored, const RouteNaming& before,
                                       const RouteNaming& after) {
  std::optional<std::string> why;
  std::set<std::string, std::less<>> found;
  const bool is_readable = stored.visit([&](const std::string& operation) {
    // What a shadow route has seen protects no request: losing it makes nothing run twice.
    if (is_shadow_operation(operation) || found.contains(operation)) return true;
    why = RouteNaming::why_lost(before, after, operation);
    if (found.size() == limits::operations_remembered_max) found.clear();
    found.insert(operation);
    return !why.has_value();
  });
  if (is_readable) return why;
  return "a record cannot be read, so its operation is not known";
}

/// A field that carried keys and is not among `after`; nullptr: none.
const std::string* dropped_field(const std::vector<std::string>& before,
                                 const std::vector<std::string>& after) {
  const auto is_dropped = [&](const std::string& name) {
    return std::ranges::none_of(after,
                                [&](const std::string& kept) { return equal_names(name, kept); });
  };
  const auto found = std::ranges::find_if(before, is_dropped);
  return found == before.end() ? nullptr : &*found;
}

bool holds_records(const StoredOperations& stored) {
  bool holds = false;
  const bool is_readable = stored.visit([&](const std::string& operation) {
    holds = !is_shadow_operation(operation);
    return !holds;
  });
  return holds || !is_readable;
}

/// A new name that only records of shadow routes have; nullptr: none.
const std::string* reserved_name(const std::vector<RouteName>& routes) {
  const auto found = std::ranges::find_if(
      routes, [](const RouteName& route) { return is_shadow_operation(route.name); });
  return found == routes.end() ? nullptr : &found->name;
}

}  // namespace

AdoptRoutes::Reply adopt(Naming& naming, AdoptRoutes& verb, const StoredOperations& stored) {
  auto after = RouteNaming::parse(verb.routes);
  if (!after) return {naming.generation, std::move(after.error())};
  if (const std::string* name = reserved_name(verb.routes)) {
    return {naming.generation, '"' + *name +
                                   "\" begins as the records of shadow routes do: write "
                                   "another name"};
  }
  const bool same_routes = verb.routes == naming.routes;
  if (same_routes && verb.key_fields == naming.key_fields) return {naming.generation, {}};
  // A retry that still sends this field would have no key, and would run again.
  const std::string* dropped = dropped_field(naming.key_fields, verb.key_fields);
  if (dropped != nullptr && holds_records(stored)) {
    return {naming.generation,
            "there are records of keys that may have come in " + *dropped +
                ", which is no key field any more; keep it until those records are gone"};
  }
  if (naming.by_operation && !same_routes) {
    const auto before = RouteNaming::parse(naming.routes);
    if (!before) return {naming.generation, "the recorded table is damaged: " + before.error()};
    if (auto why = lost_record(stored, *before, *after)) {
      return {naming.generation, std::move(*why)};
    }
  }
  // If the operation is no part of a record's name, reserves of the old routes stay valid. Those of
  // a dropped field never do: no retry would find one that commits from now on.
  if (dropped != nullptr || (naming.by_operation && !same_routes)) ++naming.generation;
  naming.routes = std::move(verb.routes);
  naming.key_fields = std::move(verb.key_fields);
  return {naming.generation, {}};
}

}  // namespace idem
