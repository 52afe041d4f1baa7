#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

/// What an encoded body holds (RFC 9110 §8.4.1). Pure, from any thread.
namespace idem {

enum class Coding : std::uint8_t { gzip, deflate, br };

/// By its name in Content-Encoding, in lower case; `x-gzip` is gzip. None: not one of these.
std::optional<Coding> coding_of(std::string_view name) noexcept;

enum class NotDecoded : std::uint8_t {
  too_large,  ///< It holds more than was allowed.
  malformed,  ///< It does not follow the coding, is cut, or goes on behind its end.
};

/// What `body` holds, if that is `bytes_max` bytes at most. Strict, because two decoders must not
/// see two contents: nothing may stand behind the end (a further member of gzip included), the
/// checksums must be right, `deflate` has its zlib header (RFC 1950) and no preset dictionary.
///
/// Time and memory grow with the bytes that are decoded: never more than `bytes_max` and a block.
std::expected<std::string, NotDecoded> decoded(Coding coding, std::string_view body,
                                               std::size_t bytes_max);

}  // namespace idem
