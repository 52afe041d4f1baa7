#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Tells bytes that a medium has damaged from those that were written (protocol.md §22). It is no
/// signature: who can write to the store can write what he likes.
namespace idem {

inline constexpr std::size_t checksum_bytes = sizeof(std::uint64_t);

/// XXH3, 64 bits, over whose bytes they are, too: those of another record do not match. `beside`
/// is what lies elsewhere and belongs to them.
std::uint64_t checksum_of(const RecordId& id, std::string_view bytes,
                          std::string_view beside = {}) noexcept;

/// Puts it behind `bytes`, little-endian.
void append_checksum(const RecordId& id, std::string& bytes, std::string_view beside = {});

/// What lies before the checksum; none: it does not match.
std::optional<std::string_view> without_checksum(const RecordId& id, std::string_view bytes,
                                                 std::string_view beside = {}) noexcept;

inline constexpr std::string_view checksum_differs = "its checksum does not match";

}  // namespace idem
