#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem {

/// The decoded value of a field value that is exactly one String Item by RFC 9651 §4.2, with
/// parameters that are checked as strictly as the item and then dropped. On refusal: static text
/// that says what is wrong and repeats nothing of the value.
std::expected<std::string, std::string_view> read_string_item(std::string_view value);

}  // namespace idem
