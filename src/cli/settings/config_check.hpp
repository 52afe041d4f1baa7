#pragma once

#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// Finds what would make a start fail although the settings are valid: named directories and files
/// that are missing, certificates that cannot be used. Creates nothing.
void check_named_files(const ReadSettings& read, Complaints& complaints);

/// What `idem config check` would complain of if flags gave these settings, in places of flags.
/// Relative paths are resolved as for flags, those of defaults in `given.folder`.
std::vector<std::string> complaints_about(GatewayFlags given);

/// Warns of routes, including the rest, that need no key and match all paths of an earlier route
/// that needs one, and more. Paths are compared as sent, so another spelling of that route's path
/// would match the later one.
void warn_of_laxer_routes(const ReadSettings& read, Complaints& warnings);

/// Says which routes, including the rest, allow a request to ask for another method.
void warn_of_method_overrides(const ReadSettings& read, Complaints& warnings);

}  // namespace idem::cli
