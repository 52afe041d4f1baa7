#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idem::embedded {

/// Once a store is open, a full disk ends the process; before, it is only an error. `bytes`: what
/// `what` needs in this folder. `largest_file`: how large a file it must be able to write. None:
/// there is room, or it is unknown.
std::optional<std::string> why_too_full(const std::string& folder, std::uint64_t bytes,
                                        std::uint64_t largest_file,
                                        std::string_view what = "a start");

}  // namespace idem::embedded
