#pragma once

#include "admin/setting_change.hpp"
#include "cli/settings/gateway_flags.hpp"

#include <vector>

namespace idem::cli {

/// All changes, in the order of the table of settings, then route by route. A route is one of
/// before by its name, or by what it matches. An untouched file gives none, also where only the
/// content of a file differs that a setting names.
std::vector<admin::SettingChange> changes_between(GatewayFlags running, GatewayFlags next);

/// The names of those that need a restart.
std::vector<std::string> changed_for_restart(GatewayFlags running, GatewayFlags next);

}  // namespace idem::cli
