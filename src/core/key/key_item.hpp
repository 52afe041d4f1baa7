#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem {

/// Decodes a field value that is exactly one String Item (RFC 9651 §4.2). Parameters are checked as
/// strictly as the item and then dropped. The error is static text that says what is wrong and
/// repeats nothing of the value.
std::expected<std::string, std::string_view> read_string_item(std::string_view value);

}  // namespace idem
