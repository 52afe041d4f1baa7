#pragma once

#include <idem/guard.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace idem::library {

/// A request while its work is unfinished: length-framed parts, which are a version, method,
/// target, scope, body, and each field's name and value.
std::string pack_input(const Request& request);
/// The stored form: with a checksum behind it that is bound to the record. Each attempt acts on
/// what it reads here, so damage would charge another amount.
std::string sealed_input(const RecordId& id, std::string_view packed);
/// Of the stored form. None: another version made it, or it is damaged.
std::optional<Request> unpack_input(const RecordId& id, std::string_view sealed);

}  // namespace idem::library
