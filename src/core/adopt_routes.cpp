#include "core/adopt_routes.hpp"

#include "core/route_naming.hpp"

#include <idem/limits.hpp>

#include <set>

namespace idem {
namespace {

/// Why one of the store's records would be lost; none: all are found.
std::optional<std::string> why_not(const StepContext& context, const RouteNaming& before,
                                   const RouteNaming& after) {
  std::optional<std::string> why;
  std::set<std::string, std::less<>> good;
  context.table.visit([&](const Record* record) {
    if (record == nullptr) {
      why = "a record cannot be read, so nobody knows the name under which it must be found";
      return false;
    }
    if (!transitions::is_live(*record, context.now) || good.contains(record->operation)) {
      return true;
    }
    why = RouteNaming::why_lost(before, after, record->operation);
    if (good.size() == limits::operations_remembered_max) good.clear();
    good.insert(record->operation);
    return !why.has_value();
  });
  return why;
}

}  // namespace

AdoptRoutes::Reply adopt(const StepContext& context, AdoptRoutes& verb) {
  Naming& naming = context.naming;
  auto after = RouteNaming::parse(verb.routes);
  if (!after) return {naming.generation, std::move(after.error())};
  if (verb.routes == naming.routes) return {naming.generation, {}};
  if (naming.by_operation) {
    const auto before = RouteNaming::parse(naming.routes);
    if (!before) return {naming.generation, "the recorded table is damaged: " + before.error()};
    if (auto why = why_not(context, *before, *after)) return {naming.generation, std::move(*why)};
    // Where the operation is no part of a record's name, the old reserves are good ones, too.
    ++naming.generation;
  }
  naming.routes = std::move(verb.routes);
  context.table.save(naming);
  return {naming.generation, {}};
}

}  // namespace idem
