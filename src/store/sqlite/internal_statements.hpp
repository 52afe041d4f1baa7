#pragma once

#include "store/internal_sql.hpp"

namespace idem::sqlite {

std::string_view text_of(InternalStatement statement) noexcept;

}  // namespace idem::sqlite
