#pragma once

#include "cli/settings/settings_source.hpp"

namespace idem::cli {

using Lines = std::vector<std::string>;

/// Reads the settings again for a running gateway. Refused as a whole, with the places or names of
/// what stands in the way, when anything is wrong, or when a setting changed that needs a restart.
/// Who we are (owner, name in Via, TLS to the upstream) stays. The store has not adopted the
/// routes.
std::expected<ReadSettings, std::string> read_again(const SettingsSource& source,
                                                    const GatewayFlags& given,
                                                    const gateway::GatewaySettings& current);

}  // namespace idem::cli
