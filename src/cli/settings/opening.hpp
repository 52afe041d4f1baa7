#pragma once

#include "cli/commands.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// Logs the warnings about the settings.
void log_warnings(const ReadSettings& read, const LogSink& log);

/// Opens the configured store. Logs which one it is and how many records it has, and warns if it is
/// new. `make`: creates a missing one. The error is a sentence.
std::expected<std::unique_ptr<Store>, std::string> open_configured_store(
    const GatewayOptions& options, bool make, const LogSink& log);

}  // namespace idem::cli
