#pragma once

#include "cli/log/process_log.hpp"
#include "cli/settings/settings_source.hpp"
#include "http/spill_space.hpp"
#include "store/store_file.hpp"

#include <expected>
#include <memory>
#include <optional>
#include <vector>

namespace idem::cli {

/// Logs the warnings about the settings.
void log_warnings(const ReadSettings& read, const LogSink& log);

/// How these settings name records.
IdentitySettings identity_settings(const GatewayOptions& options);

/// What a start with these settings would say to what is at the path of its store.
struct FileJudgement {
  std::expected<StoreFileReport, StoreFileError> report;
  /// A sentence; none: it takes the store, or makes one.
  std::optional<std::string> why_refused;
};
FileJudgement judge_store_file(const StoreFileKind& kind, const GatewayOptions& options,
                               LookDepth depth);

struct StoreJudgement {
  /// A sentence; none: the store takes these settings, or there is none yet.
  std::optional<std::string> why_refused;
  std::vector<std::string> doubts;  ///< As of a store that serves: sentences.
};
/// Changes nothing. Only if `asks_store`, a server is asked and a file read as by a start.
StoreJudgement judge_store(const GatewayOptions& options, bool asks_store);

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
