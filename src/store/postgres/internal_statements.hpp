#pragma once

#include "store/internal_sql.hpp"

namespace idem::postgres {

/// Calls of the functions of schema/postgres/functions.
std::string_view text_of(InternalStatement statement) noexcept;

}  // namespace idem::postgres
