#pragma once

#include "store/store_file.hpp"

#include <optional>
#include <string>

namespace idem::sqlite {

/// As StoreFileKind::restore.
std::expected<Restored, StoreFileError> restore_file(const RestoreOrder& order);

/// The sentence to which a link leads that a restore leaves at the path while it has neither store;
/// none: there is something else.
std::optional<std::string> interrupted_restore_at(const std::string& path);

}  // namespace idem::sqlite
