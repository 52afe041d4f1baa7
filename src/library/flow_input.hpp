#pragma once

#include <idem/guard.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace idem::library {

/// What is kept of a request while its work is unfinished, as one text of length-framed parts: a
/// version, then method, target, scope, body, and each field's name and value.
std::string pack_input(const Request& request);
/// None: it was not made by this, or is damaged.
std::optional<Request> unpack_input(std::string_view bytes);

}  // namespace idem::library
