#pragma once

#include <string_view>

namespace idem::cli {

/// Whether a setting, by its name in the file, has no effect on `idem worker`, which serves no
/// clients. All others are for gateway and worker.
bool is_gateways_alone(std::string_view path);

/// The same for a setting of one entry of `routes`. A worker uses the operations' names of a route
/// and its provider.
bool is_gateways_alone_in_routes(std::string_view path);

}  // namespace idem::cli
