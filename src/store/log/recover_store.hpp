#pragma once

#include "store/store_file.hpp"

namespace idem::segments {

/// As StoreFileKind::recover.
std::expected<Recovered, StoreFileError> recover_store(const RecoverOrder& order);

}  // namespace idem::segments
