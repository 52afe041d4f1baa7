#include "cli/settings/effective_routes.hpp"

#include "cli/settings/route_settings.hpp"
#include "gateway/answer_meanings.hpp"

namespace idem::cli {
namespace {

using admin::EffectiveSetting;
using config::Setting;

EffectiveSetting effective(const Setting& setting, std::string_view name, const char* given_as) {
  const config::Place* const place = config::given_at(setting);
  return {.name = std::string(name),
          .value = config::value_of(setting),
          .origin = place == nullptr ? "built in" : given_as,
          .place = place == nullptr ? "" : place->text(),
          .help = std::string(setting.help)};
}

/// Those of an entry of `routes`; null: of the requests that no entry matches.
std::vector<EffectiveSetting> settings_that_apply(RouteGiven* route, RouteGiven& all) {
  const auto for_all = settings_of(all);
  const auto own = route == nullptr ? for_all : settings_of(*route);
  std::vector<EffectiveSetting> effectives;
  for (std::size_t row = 0; row < for_all.size(); ++row) {
    const bool is_own = route != nullptr && config::given_at(own[row]) != nullptr;
    auto one =
        effective(is_own ? own[row] : for_all[row], own[row].path, is_own ? "route" : "defaults");
    const bool only_of_entries = route_settings[row].all.path.empty();
    if (route == nullptr && only_of_entries && one.value.empty()) continue;
    effectives.push_back(std::move(one));
  }
  return effectives;
}

std::vector<admin::StatusMeaning> meanings(const gateway::Route& route, const std::string& preset,
                                           bool retry_after) {
  const auto origin_of = [&](gateway::DecidedBy by) -> std::string {
    switch (by) {
      case gateway::DecidedBy::proof:
        return "built in";
      case gateway::DecidedBy::route:
        return "route";
      case gateway::DecidedBy::preset:
        break;
    }
    return "preset " + preset;
  };
  std::vector<admin::StatusMeaning> all;
  for (const auto& one : gateway::meanings_of(route.answers, retry_after)) {
    all.push_back({one.first, one.last, one.outcome, origin_of(one.by)});
  }
  return all;
}

}  // namespace

std::shared_ptr<const admin::RoutePolicies> effective_routes(GatewayFlags given,
                                                             const gateway::RouteTable& routes) {
  Complaints ignored;
  auto entries = read_routes(given.routes, ignored);
  admin::RoutePolicies policies;
  for (std::size_t i = 0; i < routes.all().size(); ++i) {
    const gateway::Route& route = routes.all()[i];
    // The table has one more: the requests that no entry matches.
    RouteGiven* const entry = i < entries.size() ? &entries[i] : nullptr;
    const bool has_preset = entry != nullptr && entry->one("preset").given;
    const std::string& preset = (has_preset ? *entry : given.rest).one("preset").text;
    policies.routes.push_back({.label = route.label(),
                               .methods = route.methods,
                               .path = route.path.text(),
                               .in_shadow = route.in_shadow(),
                               .settings = settings_that_apply(entry, given.rest),
                               .answers = meanings(route, preset, false),
                               .answers_with_retry_after = meanings(route, preset, true)});
  }
  for (const Setting& one : settings_of(given)) {
    if (!one.path.starts_with("quotas.")) continue;
    policies.quotas.push_back(effective(one, one.path, "settings"));
  }
  return std::make_shared<const admin::RoutePolicies>(std::move(policies));
}

}  // namespace idem::cli
