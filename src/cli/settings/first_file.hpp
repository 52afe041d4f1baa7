#pragma once

#include "cli/settings/gateway_flags.hpp"

#include <string>
#include <vector>

/// The configuration file that `idem init` writes. Names, values and most comments come from the
/// table of settings, so that they change with it.
namespace idem::cli {

/// Whether `idem init` has a flag for the setting: addresses, upstream, store, preset, and what
/// some scope needs. All others have a default with which a gateway starts.
bool is_of_first_file(const config::Setting& setting);

/// The file as YAML: what is given and what every gateway chooses; as comments with their defaults,
/// what many change later; an example of a route. A store's URL is written with its password.
std::string first_file(GatewayFlags flags);

/// Whether a store's URL holds a password, of a user or in an option such as libpq's `password`.
/// In doubt it does: the file is then for its owner only.
bool holds_password(const std::string& store_url);

/// Complaints if a reader of the file `path` with this text would read other values than the given
/// ones, such as one that is no UTF-8.
std::vector<std::string> misread_settings(const std::string& text, const std::string& path,
                                          GatewayFlags given);

}  // namespace idem::cli
