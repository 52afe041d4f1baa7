#pragma once

#include "admin/setting_change.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// Reads the settings again for a running gateway. Fails as a whole, with the places or names of
/// the causes, if anything is wrong or a changed setting needs a restart. Owner, name in Via and
/// TLS to the upstream stay the same. The store has not adopted the routes yet.
std::expected<ReadSettings, std::string> read_again(const SettingsSource& source,
                                                    const GatewayFlags& given,
                                                    const gateway::GatewaySettings& current);

/// What read_again() would find: the changes, and why it would fail.
admin::SettingsDifference difference_of(const SettingsSource& source, const GatewayFlags& given);

}  // namespace idem::cli
