#pragma once

#include "store/migration.hpp"

#include <span>

namespace idem::postgres {

/// The files of schema/postgres/tables.
std::span<const Migration> migrations() noexcept;

/// The files of schema/postgres/functions.
FunctionSet function_set() noexcept;

}  // namespace idem::postgres
