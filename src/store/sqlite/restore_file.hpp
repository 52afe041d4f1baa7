#pragma once

#include "store/store_file.hpp"

#include <optional>
#include <string>

namespace idem::sqlite {

/// As StoreFileKind::restore.
std::expected<Restored, StoreFileError> restore_file(const RestoreOrder& order);

/// The sentence in a file that a restore leaves at the path while it has neither store; none: it is
/// another file.
std::optional<std::string> interrupted_restore_at(const std::string& path);

}  // namespace idem::sqlite
