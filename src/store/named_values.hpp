#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace idem {

/// Checks a statement that names `$n` for each n of `named` and came with this many values. Answers
/// the complaint, the same sentence on every database; none: names and values match.
std::optional<std::string> parameter_mismatch(const std::set<std::size_t>& named,
                                              std::size_t values);

}  // namespace idem
