#pragma once

#include "admin/route_policy.hpp"
#include "cli/settings/gateway_flags.hpp"
#include "gateway/route.hpp"

#include <memory>

namespace idem::cli {

/// What applies to each route of `routes`, which were parsed from `given`, and where it comes from:
/// by the table of settings, as `idem config print` prints it.
std::shared_ptr<const admin::RoutePolicies> effective_routes(GatewayFlags given,
                                                             const gateway::RouteTable& routes);

}  // namespace idem::cli
