#pragma once

#include <idem/record.hpp>

#include <optional>
#include <string_view>

namespace idem {

/// The id of a handle, which to_hex() has written; none: the text is no handle.
std::optional<RecordId> parse_handle(std::string_view text) noexcept;

}  // namespace idem
