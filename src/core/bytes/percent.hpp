#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// Decodes a percent-encoded part of a URL (RFC 3986 §2.1). None: a percent sign without two
/// hexadecimal digits behind it.
std::optional<std::string> percent_decoded(std::string_view text);

/// Encodes `text` for a part of a URL: all bytes but the unreserved ones (RFC 3986 §2.3).
std::string percent_encoded(std::string_view text);

}  // namespace idem
