#pragma once

#include "cli/settings_source.hpp"

namespace idem::cli {

using Lines = std::vector<std::string>;

/// The same settings, or a line for each that this version knows and does not act on yet.
std::expected<ReadSettings, Lines> refuse_unserved(ReadSettings read);

/// Reads the settings again for a running gateway. Refused as a whole, with the places or names of
/// what stands in the way, when anything is wrong, when a setting changed that needs a restart, or
/// when requests would be stored under another operation. Who we are (owner, name in Via, TLS to
/// the upstream) stays.
std::expected<ReadSettings, std::string> read_again(const SettingsSource& source,
                                                    const GatewayFlags& given,
                                                    const gateway::GatewaySettings& current);

/// An operation names records: requests that would get another one while the gateway runs would not
/// find theirs and run again. So names, matches and the order of routes stay as they are; what
/// routes do may change.
std::expected<void, std::string> keep_operations(const gateway::RouteTable& before,
                                                 const gateway::RouteTable& after);

}  // namespace idem::cli
