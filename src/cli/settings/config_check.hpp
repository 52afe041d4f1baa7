#pragma once

#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// What a start would stumble over although the settings are right: directories and files that they
/// name and that are not there, or certificates that cannot be used. Nothing is made.
void check_named_files(const ReadSettings& read, Complaints& complaints);

/// What may be meant otherwise: routes, the rest among them, that want no key and take all that a
/// route before them takes with one, and more. Paths are compared as they are sent, so that another
/// spelling of that route's path comes there.
void warn_of_laxer_routes(const ReadSettings& read, Complaints& warnings);

}  // namespace idem::cli
