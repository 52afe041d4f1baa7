#pragma once

#include "admin/admin.hpp"
#include "admin/route_policy.hpp"
#include "metrics/quota_refusals.hpp"

#include <string>

namespace idem::admin {

std::string routes_page(const RoutePolicies& policies,
                        const metrics::QuotaRefusals::Report& refusals);

/// `GET /v1/routes`: each route with the settings that apply to it, and the quotas.
WireAnswer routes_answer(const AdminParts& parts, const http::RequestHead& head);

}  // namespace idem::admin
