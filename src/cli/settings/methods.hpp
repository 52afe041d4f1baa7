#pragma once

#include <span>
#include <string_view>

namespace idem::cli {

/// The registered methods of HTTP (RFC 9110 §16.1.2), and PURGE, which caches use unregistered.
std::span<const std::string_view> known_methods();

}  // namespace idem::cli
