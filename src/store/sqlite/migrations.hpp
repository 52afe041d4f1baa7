#pragma once

#include "store/migration.hpp"

#include <span>

namespace idem::sqlite {

/// Of schema/sqlite.
std::span<const Migration> migrations() noexcept;

}  // namespace idem::sqlite
