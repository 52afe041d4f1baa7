#pragma once

#include "cli/settings/settings_source.hpp"

#include <string>

namespace idem::cli {

/// The three commands that follow `idem init`, each on a line of its own, to be pasted into a
/// shell: the gateway, one request with a key, and the list of keys. Lines that begin with # say
/// what has to be put in where the settings do not say it, such as a token.
std::string next_commands(const ReadSettings& read, const std::string& file);

}  // namespace idem::cli
