#pragma once

#include "store/log/look.hpp"
#include "store/store_file.hpp"

namespace idem::segments {

/// As StoreFileKind::check.
std::expected<StoreFileReport, StoreFileError> check_store(const std::string& path,
                                                           const StoreFileProgress& progress);
/// Reads all of it.
StoreFileReport check(Look& look, const StoreFileProgress& progress);

}  // namespace idem::segments
