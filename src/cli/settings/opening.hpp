#pragma once

#include "cli/log/process_log.hpp"
#include "cli/settings/settings_source.hpp"
#include "http/spill_space.hpp"
#include "store/store_file.hpp"

#include <expected>
#include <memory>
#include <optional>

namespace idem::cli {

/// Logs the warnings about the settings.
void log_warnings(const ReadSettings& read, const LogSink& log);

/// How these settings name records.
IdentitySettings identity_settings(const GatewayOptions& options);

/// Why a start with these settings refuses the store that was looked at in its file, a sentence.
std::optional<std::string> why_file_refuses(const StoreFileReport& report, const std::string& path,
                                            const std::string& wanted_id);

/// Why the store refuses these settings, a sentence; none: it does not, or a file is not there yet.
/// Changes nothing. A server is asked only if `asks_server`.
std::optional<std::string> why_store_refuses(const GatewayOptions& options, bool asks_server);

/// The store records how records are named, or says why these routes would hide some. A gateway
/// serves only with adopted routes; sets their generation. Waits for the store.
std::expected<void, StartFailure> adopt_routes(Store& store, const std::string& url,
                                               gateway::GatewaySettings& settings);

/// Opens the configured store. Logs which one it is and how many records it has, and warns if it is
/// new. `make`: creates a missing one. Settings that contradict the store end with `usage`: no
/// further start with them succeeds while its records live.
std::expected<std::unique_ptr<Store>, StartFailure> open_configured_store(
    const GatewayOptions& options, bool make, const LogSink& log);

/// The folder for large bodies. The error is a sentence that says which setting names it, and what
/// to do.
std::expected<std::unique_ptr<http::SpillSpace>, std::string> open_spill_folder(
    const GatewayFlags& given, const GatewayOptions& options);

}  // namespace idem::cli
