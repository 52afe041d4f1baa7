#pragma once

#include "store/store_file.hpp"

namespace idem::segments {

/// As StoreFileKind::backup. The backup is a directory, as the store is.
std::expected<StoreFileReport, StoreFileError> back_up_store(const std::string& path,
                                                             const std::string& to,
                                                             const StoreFileProgress& progress);

/// As StoreFileKind::restore.
std::expected<Restored, StoreFileError> restore_store(const RestoreOrder& order);

}  // namespace idem::segments
