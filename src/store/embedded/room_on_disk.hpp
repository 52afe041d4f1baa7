#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace idem::embedded {

/// Once a store is open, a full disk ends the process; before, it is only an error. `bytes`: what
/// a start needs in this folder. `largest_file`: how large a file it must be able to write. None:
/// there is room, or it is unknown.
std::optional<std::string> why_too_full(const std::string& folder, std::uint64_t bytes,
                                        std::uint64_t largest_file);

}  // namespace idem::embedded
