#pragma once

#include "store/store_file.hpp"

#include <expected>
#include <string>

namespace idem::segments {

/// As StoreFileKind::reindex.
std::expected<std::uint64_t, StoreFileError> reindex_store(const std::string& path,
                                                           const StoreFileProgress& progress);

}  // namespace idem::segments
