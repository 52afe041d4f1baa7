#pragma once

#include <string_view>

namespace idem::cli {

/// Whether a setting, by its name in the file, is of no use to `idem worker`, which takes no
/// requests. All others are the gateway's and the worker's.
bool is_gateways_alone(std::string_view path);

/// The same of a setting of one entry of `routes`: to a worker a route says under which name
/// records lie, and who is asked about them.
bool is_gateways_alone_in_routes(std::string_view path);

}  // namespace idem::cli
