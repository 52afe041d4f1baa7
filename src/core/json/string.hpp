#pragma once

#include <idem/json.hpp>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace idem {

/// A string literal in a JSON text: the bytes between its quotes.
struct StringLiteral {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< Of the closing quote.
  bool plain = true;    ///< No backslash: the bytes are the value, and are canonical.
};

/// The literal whose opening quote is at `quote`. Its bytes are well-formed UTF-8 without control
/// characters; decode_string() checks the escapes.
std::expected<StringLiteral, JsonError> scan_string(std::string_view text, std::size_t quote);

/// Appends the literal's value as UTF-8, never longer than the literal. Refuses escapes that RFC
/// 8259 §7 does not name and surrogates without their other half.
std::expected<void, JsonError> decode_string(std::string_view text, const StringLiteral& literal,
                                             std::string& out);

}  // namespace idem
