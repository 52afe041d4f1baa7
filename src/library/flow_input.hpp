#pragma once

#include <idem/guard.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace idem::library {

/// The stored form of a request while its work is unfinished: length-framed parts, which are a
/// version, method, target, scope, body, and each field's name and value.
std::string pack_input(const Request& request);
/// None: another version made it, or it is damaged.
std::optional<Request> unpack_input(std::string_view bytes);

}  // namespace idem::library
