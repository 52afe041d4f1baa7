#pragma once

#include <optional>
#include <string>
#include <string_view>

/// RFC 4648. Each byte string has exactly one text of a kind: what is read has no other characters
/// and no bits beyond the last byte.
namespace idem {

/// §4, with padding.
std::string to_base64(std::string_view bytes);

/// None for texts that to_base64() does not write.
std::optional<std::string> from_base64(std::string_view text);

/// §5, without padding, as RFC 7515 §2 has it. None for any other text.
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace idem
