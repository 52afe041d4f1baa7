#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem::compare {

/// The value of a decimal number, in one spelling for all that are equal: "1250", "-0.5". No
/// floating point is used. `text` is a number as JSON spells it ("12.50", "1e3"), times
/// 10^`scale`: with 2, "12.50" is "1250". The error says what is wrong with it; separators of
/// thousands, signs of currencies and decimal commas are refused, because nobody can know them.
std::expected<std::string, std::string> exact_amount(std::string_view text, int scale = 0);

}  // namespace idem::compare
