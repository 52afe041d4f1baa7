#pragma once

#include "store/log/look.hpp"
#include "store/store_file.hpp"

#include <expected>
#include <optional>
#include <string>

namespace idem::segments {

/// Makes a store of what was looked at, in the directory `to`, which must not exist: with the same
/// places, a log of one frame, and `copied_at`, if any, noted in it. It is durable when this
/// returns; the directory may stay after an error.
std::expected<void, StoreFileError> copy_store(StoreLook& look, const std::string& to,
                                               std::optional<StoreTime> copied_at,
                                               const StoreFileProgress& progress);

}  // namespace idem::segments
