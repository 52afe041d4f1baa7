#pragma once

#include <string>
#include <string_view>

namespace provider {

/// `text` between quotes, as JSON.
std::string in_quotes(std::string_view text);

/// The raw JSON value of the first member with this name, by a text search; empty if there is none.
/// Only for values that are echoed.
std::string_view raw_member(std::string_view body, std::string_view name);

/// The string, or the number as text, of a member of the body's object, by a parser; empty if there
/// is none or the body is no JSON. For values that decide something.
std::string text_member(std::string_view body, std::string_view name);

}  // namespace provider
