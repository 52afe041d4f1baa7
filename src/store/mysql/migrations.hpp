#pragma once

#include "store/migration.hpp"

#include <span>

namespace idem::mysql {

/// The files of schema/mysql/tables.
std::span<const Migration> migrations() noexcept;

/// All functions and procedures as this program needs them, in schema/mysql/functions.
FunctionSet function_set() noexcept;

}  // namespace idem::mysql
