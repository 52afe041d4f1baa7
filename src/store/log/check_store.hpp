#pragma once

#include "store/store_file.hpp"

#include <expected>
#include <string>

namespace idem::segments {

/// As StoreFileKind::check.
std::expected<StoreFileReport, StoreFileError> check_store(const std::string& path,
                                                           const StoreFileProgress& progress);
}  // namespace idem::segments
