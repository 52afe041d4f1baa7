#pragma once

#include "store/migration.hpp"

#include <span>

namespace idem::postgres {

/// Of schema/postgres.
std::span<const Migration> migrations() noexcept;

}  // namespace idem::postgres
