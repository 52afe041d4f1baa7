#pragma once

#include "store/own_rows.hpp"

namespace idem::sqlite {

std::string_view text_of(OwnStatement statement) noexcept;

}  // namespace idem::sqlite
