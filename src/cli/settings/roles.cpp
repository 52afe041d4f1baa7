#include "cli/settings/roles.hpp"

#include "cli/settings/route_settings.hpp"

#include <algorithm>
#include <array>

namespace idem::cli {
namespace {

using Paths = std::string_view;

/// A dot at the end: the whole section.
constexpr std::array gateways{Paths("listen"),
                              Paths("tls."),
                              Paths("upstream."),
                              Paths("threads"),
                              Paths("log_requests"),
                              Paths("authorize."),
                              Paths("key.headers"),
                              Paths("key.syntax"),
                              Paths("key.min_length"),
                              Paths("key.reject_pii"),
                              Paths("key.time"),
                              Paths("key.first_sent"),
                              Paths("key.forward"),
                              Paths("defaults."),
                              Paths("limits.request_body"),
                              Paths("limits.response_body"),
                              Paths("limits.wait_max"),
                              Paths("limits.connections"),
                              Paths("limits.connections_per_address"),
                              Paths("quotas.")};

}  // namespace

bool is_gateways_alone(std::string_view path) {
  return std::ranges::any_of(gateways, [&](std::string_view one) {
    return one.ends_with('.') ? path.starts_with(one) : path == one;
  });
}

bool is_gateways_alone_in_routes(std::string_view path) {
  const auto row = std::ranges::find(route_settings, path, &RouteSetting::path);
  return row != route_settings.end() && row->role == RouteRole::gateway;
}

}  // namespace idem::cli
