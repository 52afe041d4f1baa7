#pragma once

#include "admin/setting_change.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// One reading of the settings for a running gateway: what it changes, and the settings, unless the
/// difference says why they are refused.
struct ReadAgain {
  admin::SettingsDifference difference{};
  std::optional<ReadSettings> settings{};
};

/// Fails as a whole, with the places or names of the causes, if anything is wrong or a changed
/// setting needs a restart. The store has not adopted the routes yet.
ReadAgain read_again(const SettingsSource& source, const GatewayFlags& given);

/// Owner, name in Via and TLS to the upstream stay the same across a reload.
void keep_what_stays(gateway::GatewaySettings& next, const gateway::GatewaySettings& current);

}  // namespace idem::cli
