#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace idem::cli {

/// All of `words`, with `between` from one to the next.
std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace idem::cli
