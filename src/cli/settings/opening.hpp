#pragma once

#include "cli/commands.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// What of its settings a start warns of.
void log_warnings(const ReadSettings& read, const LogSink& log);

/// Opens the store that is configured, and logs which one it is, how many records it has, and with
/// a warning that it is a new one. `make`: where there is none, one is made.
std::expected<std::unique_ptr<Store>, std::string> open_configured_store(
    const GatewayOptions& options, bool make, const LogSink& log);

}  // namespace idem::cli
