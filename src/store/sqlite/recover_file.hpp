#pragma once

#include "store/store_file.hpp"

namespace idem::sqlite {

/// As StoreFileKind::recover. A file that a start would open, but for its log, keeps the tables of
/// a service; of one that SQLite cannot read to the end only the store's own are taken.
std::expected<Recovered, StoreFileError> recover_file(const RecoverOrder& order);

}  // namespace idem::sqlite
