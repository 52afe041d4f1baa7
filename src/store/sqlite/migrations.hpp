#pragma once

#include "store/migration.hpp"

#include <span>

namespace idem::sqlite {

/// The files of schema/sqlite.
std::span<const Migration> migrations() noexcept;

}  // namespace idem::sqlite
