#pragma once

#include "cli/settings_source.hpp"

namespace idem::cli {

/// What a start would stumble over although the settings are right: directories and files that they
/// name and that are not there, or certificates that cannot be used. Nothing is made.
void check_named_files(const ReadSettings& read, Complaints& complaints);

/// What may be meant otherwise: routes open at their end, the rest among them, that want no key
/// although a route before them does. Paths are compared as they are sent, so that another spelling
/// of that route's path comes there.
void warn_of_laxer_routes(const ReadSettings& read, Complaints& warnings);

}  // namespace idem::cli
