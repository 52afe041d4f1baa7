#pragma once

#include <idem/record.hpp>

#include <optional>
#include <string_view>

namespace idem::admin {

/// A record's `ref`: its id in 32 lower-case hexadecimal digits.
std::optional<RecordId> parse_ref(std::string_view text);

}  // namespace idem::admin
