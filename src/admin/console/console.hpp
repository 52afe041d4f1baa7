#pragma once

#include "core/exchange/problem.hpp"

#include <optional>
#include <string_view>

namespace idem::admin {

/// The answer to a request for a file of the console, for everybody: no file has data of the store.
/// None: the path is none of the console's. The answers allow no code but the console's own, and no
/// page to frame it (Content Security Policy Level 3). Safe from any thread.
std::optional<WireAnswer> console_answer(std::string_view method, std::string_view target);

}  // namespace idem::admin
