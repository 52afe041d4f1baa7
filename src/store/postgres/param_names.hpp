#pragma once

#include <cstddef>
#include <set>
#include <string_view>

namespace idem::postgres {

/// The numbers of the parameters (`$1`) in a statement, outside of texts, quoted names and
/// comments, as the server reads it (PostgreSQL documentation, "Lexical Structure").
std::set<std::size_t> params_named(std::string_view sql);

}  // namespace idem::postgres
