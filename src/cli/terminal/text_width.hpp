#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace idem::cli {

/// Columns that a terminal needs for UTF-8 text: two for a wide character, none for a combining
/// mark. A byte outside of a character counts as one.
std::size_t columns_of(std::string_view text);

/// `text` in at most `columns`, with "…" in place of its middle where it is longer. Cuts no
/// character, and no mark from its character.
std::string shortened(std::string_view text, std::size_t columns);

}  // namespace idem::cli
