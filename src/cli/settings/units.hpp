#pragma once

#include <idem/record.hpp>

#include <cstddef>
#include <expected>
#include <string>

namespace idem::cli {

/// "150ms", "30s", "5m", "24h", "30d", or "0"; whole numbers only.
std::expected<Millis, std::string> parse_duration(const std::string& text);
/// "512B", "64KiB", "1MiB".
std::expected<std::size_t, std::string> parse_size(const std::string& text);

}  // namespace idem::cli
