#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// RFC 4648 §4, with padding.
std::string to_base64(std::string_view bytes);

/// None for texts that to_base64() does not write: other characters, missing padding, excess bits.
/// So each byte string has exactly one text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace idem
