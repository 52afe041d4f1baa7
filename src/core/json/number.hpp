#pragma once

#include <idem/json.hpp>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace idem {

/// How a number is written: as RFC 8785 says; or exactly, where RFC 8785 would change its value.
enum class NumberForm { ecmascript, exact };

/// A number literal by RFC 8259 §6.
struct NumberLiteral {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool integer = true;  ///< Neither a fraction nor an exponent.
};

/// The literal that begins at `begin` with a digit or a minus sign. Does not check what follows it.
std::expected<NumberLiteral, JsonError> scan_number(std::string_view text, std::size_t begin);

/// The double that is nearest to the literal's value (ties to even); a zero with the literal's sign
/// where it underflows. Error: it overflows a double.
std::expected<double, JsonError> double_of(std::string_view text, const NumberLiteral& literal);

/// Appends the literal's value in the given form. Errors: under `ecmascript` a value that overflows
/// a double; under `exact` an exponent of more than 18 digits.
std::expected<void, JsonError> append_number(std::string& out, std::string_view text,
                                             const NumberLiteral& literal, NumberForm form);

}  // namespace idem
