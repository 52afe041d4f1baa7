#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// The octets that a percent-encoded part of a URL stands for (RFC 3986 §2.1). None: a percent sign
/// without two hexadecimal digits behind it.
std::optional<std::string> percent_decoded(std::string_view text);

/// `text` as it stands in a part of a URL: all but what is unreserved (RFC 3986 §2.3) is encoded.
std::string percent_encoded(std::string_view text);

}  // namespace idem
