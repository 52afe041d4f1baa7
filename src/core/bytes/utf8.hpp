#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace idem {

/// Bytes of the well-formed UTF-8 sequence at `at` (Unicode 15, table 3-7), or 0: overlong forms,
/// surrogates, values above U+10FFFF and cut sequences are not well-formed. `at` < text.size().
std::size_t utf8_sequence(std::string_view text, std::size_t at) noexcept;

bool is_utf8(std::string_view text) noexcept;

/// The beginning of `text`, at most `bytes_max` bytes: cuts no sequence, and turns each byte
/// outside of one into '?'.
std::string utf8_of(std::string_view text, std::size_t bytes_max);

/// Appends the encoding of `code_point`, which is at most U+10FFFF and no surrogate.
void append_utf8(std::string& out, char32_t code_point);

/// Whether `a` comes before `b` when both are compared as UTF-16 code units (RFC 8785 §3.2.3). Both
/// are well-formed UTF-8; nothing is converted.
bool utf16_less(std::string_view a, std::string_view b) noexcept;

}  // namespace idem
