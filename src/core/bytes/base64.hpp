#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// RFC 4648 §4, with padding.
std::string to_base64(std::string_view bytes);

/// Nothing for what to_base64() does not write: other characters, missing padding, bits that no
/// byte has. So a text and its bytes belong together both ways.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace idem
