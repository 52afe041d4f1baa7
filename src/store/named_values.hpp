#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace idem {

/// What is wrong where a statement names `$n` for each of `named`, and so many values came with it:
/// the same sentence on every database. None: each name has its value, each value its name.
std::optional<std::string> named_wrongly(const std::set<std::size_t>& named, std::size_t values);

}  // namespace idem
