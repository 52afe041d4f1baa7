#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem::compare {

/// A decimal number in its one canonical spelling, such as "1250" or "-0.5", so that equal values
/// are equal texts. Uses no floating point. `text` is a number as JSON spells it ("12.50", "1e3"),
/// times 10^`scale`: with 2, "12.50" gives "1250". The error says what is wrong. Separators of
/// thousands, currency signs and decimal commas are errors, because they are ambiguous.
std::expected<std::string, std::string> exact_amount(std::string_view text, int scale = 0);

}  // namespace idem::compare
