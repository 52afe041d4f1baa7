#include "core/naming/adopt_routes.hpp"

#include "core/exchange/policy.hpp"
#include "core/naming/route_naming.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <set>

namespace idem {
namespace {

/// Why one of the store's records would be lost; none: all are found.
std::optional<std::string> why_not(const StoredOperations& stored, const RouteNaming& before,
                                   const RouteNaming& after) {
  std::optional<std::string> why;
  std::set<std::string, std::less<>> good;
  const bool is_readable = stored.visit([&](const std::string& operation) {
    if (good.contains(operation)) return true;
    why = RouteNaming::why_lost(before, after, operation);
    if (good.size() == limits::operations_remembered_max) good.clear();
    good.insert(operation);
    return !why.has_value();
  });
  if (is_readable) return why;
  return "a record cannot be read, so nobody knows the name under which it must be found";
}

/// A field that carried keys and shall not any more; none: all are kept.
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
  const bool is_readable = stored.visit([&](const std::string&) {
    holds = true;
    return false;
  });
  return holds || !is_readable;
}

}  // namespace

AdoptRoutes::Reply adopt(Naming& naming, AdoptRoutes& verb, const StoredOperations& stored) {
  auto after = RouteNaming::parse(verb.routes);
  if (!after) return {naming.generation, std::move(after.error())};
  const bool same_routes = verb.routes == naming.routes;
  if (same_routes && verb.key_fields == naming.key_fields) return {naming.generation, {}};
  // A retry that still sends it would be one without a key, and run again.
  const std::string* dropped = dropped_field(naming.key_fields, verb.key_fields);
  if (dropped != nullptr && holds_records(stored)) {
    return {naming.generation,
            "there are records of keys that may have come as " + *dropped +
                ", which is not accepted any more; keep it until their time is over"};
  }
  if (naming.by_operation && !same_routes) {
    const auto before = RouteNaming::parse(naming.routes);
    if (!before) return {naming.generation, "the recorded table is damaged: " + before.error()};
    if (auto why = why_not(stored, *before, *after)) return {naming.generation, std::move(*why)};
  }
  // Where the operation is no part of a record's name, the reserves of the old routes are good
  // ones, too. Those of a dropped field never are: one that committed now would be looked up no
  // more.
  if (dropped != nullptr || (naming.by_operation && !same_routes)) ++naming.generation;
  naming.routes = std::move(verb.routes);
  naming.key_fields = std::move(verb.key_fields);
  return {naming.generation, {}};
}

}  // namespace idem
