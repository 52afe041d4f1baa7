#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem::gateway {

/// RFC 7515 §2: without padding, blanks or bits that no octet needs, so that each octet string has
/// exactly one spelling. Nothing for any other text.
std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace idem::gateway
