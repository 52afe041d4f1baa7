#pragma once

#include <idem/record.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

/// How a stored answer's header fields lie in a store: length-framed, so that any byte may stand in
/// them and none can end one early (protocol.md §14). The body is kept beside, as it is.
namespace idem {

inline constexpr std::uint8_t stored_fields_version = 1;

/// version (1 byte), then for each field: name length, name, value length, value. Lengths are 32
/// bits, little-endian; the end of the bytes is the end of the list.
std::string encode_fields(const std::vector<Field>& fields);

/// Total: any bytes give fields or the reason why not; never reads past the end.
std::expected<std::vector<Field>, std::string_view> decode_fields(std::string_view bytes);

}  // namespace idem
