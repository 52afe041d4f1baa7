#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// The two fields that say where a body ends (RFC 9112 §6), read in one way only.
namespace idem::http {

/// One decimal number below 2^63 and nothing else: no sign, no list, no blank (P11).
std::optional<std::uint64_t> content_length_of(std::string_view value) noexcept;

enum class Coding : std::uint8_t {
  chunked,    ///< Exactly `chunked`, in any case.
  unknown,    ///< A well-formed list with a coding that is not served.
  malformed,  ///< Not a list of names, or `chunked` twice or before another coding.
};

Coding coding_of(std::string_view transfer_encoding) noexcept;

}  // namespace idem::http
