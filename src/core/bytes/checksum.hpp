#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Detects bytes that a medium has damaged (protocol.md §22). It is no signature: an attacker who
/// can write to the store can also write a fitting checksum.
namespace idem {

inline constexpr std::size_t checksum_bytes = sizeof(std::uint64_t);

/// XXH3, 64 bits, also over the record's id: bytes of another record do not match. `beside`: bytes
/// of the record that are stored elsewhere.
std::uint64_t checksum_of(const RecordId& id, std::string_view bytes,
                          std::string_view beside = {}) noexcept;

/// Appends the checksum to `bytes`, little-endian.
void append_checksum(const RecordId& id, std::string& bytes, std::string_view beside = {});

/// The bytes before the checksum; none: it does not match.
std::optional<std::string_view> without_checksum(const RecordId& id, std::string_view bytes,
                                                 std::string_view beside = {}) noexcept;

inline constexpr std::string_view checksum_differs = "its checksum does not match";

}  // namespace idem
