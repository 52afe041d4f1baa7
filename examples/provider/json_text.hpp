#pragma once

#include <string>
#include <string_view>

namespace provider {

/// `text` between quotes, as JSON.
std::string in_quotes(std::string_view text);

/// The raw JSON value of a top-level-looking member; empty when there is none. A demonstration's
/// eyesight, no parser: for what is only echoed.
std::string_view raw_member(std::string_view body, std::string_view name);

/// The string, or the number as text, of a member of the body's own object; empty when there is
/// none or the body is no JSON. A parser's eyesight, for what is decided on or asked for later.
std::string text_member(std::string_view body, std::string_view name);

}  // namespace provider
