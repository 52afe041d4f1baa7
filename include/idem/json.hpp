#pragma once

#include <expected>
#include <string>
#include <string_view>

/// @file
/// RFC 8785 (JSON Canonicalization Scheme) and the fingerprint form that is stricter about numbers.
namespace idem::inline v0_1 {

/// Why a text was refused.
struct [[nodiscard]] JsonError {
  std::size_t offset = 0;  ///< Of the byte at which the text stopped being acceptable.
  std::string_view what;   ///< Static text: "duplicate name", "invalid UTF-8", ...
};

/// The RFC 8785 form of `text`. Refused: anything that is not JSON by RFC 8259, duplicate names,
/// invalid UTF-8, lone surrogates (RFC 7493), numbers that overflow a double, nesting deeper than
/// limits::json_depth_max. Time O(n log n) whatever the input; iterative, so the stack stays flat.
[[nodiscard]] std::expected<std::string, JsonError> canonicalize(std::string_view text);

/// As canonicalize(), except that a number whose exact decimal value differs from that of its
/// ECMAScript rendering is written as that exact decimal in a tagged form (sign, digits, exponent;
/// never expanded), which no JSON text produces: so two amounts that differ never look alike (§10).
[[nodiscard]] std::expected<std::string, JsonError> fingerprint_form(std::string_view text);

/// A finite double as ECMAScript's Number::toString writes it (ECMA-262 §6.1.6.1.20, radix 10).
std::string ecmascript_number(double value);

}  // namespace idem::inline v0_1
