#include "compare/amount.hpp"

#include "core/json/decimal.hpp"
#include "core/json/number.hpp"

namespace idem::compare {
namespace {

/// Digits before and after the point, more than any amount has; 256 bits have 78.
constexpr std::int64_t digits_max = 80;

}  // namespace

std::expected<std::string, std::string> exact_amount(std::string_view text, int scale) {
  const bool can_begin = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  const auto literal = can_begin ? scan_number(text, 0) : std::unexpected(JsonError{});
  if (!literal || literal->end != text.size()) {
    return std::unexpected("is no decimal number such as 1250 or 12.50");
  }
  const ExactDecimal value = exact_decimal(text);
  if (value.is_zero()) return "0";
  const std::string digits = std::string(value.head) + std::string(value.tail);
  const auto count = static_cast<std::int64_t>(digits.size());
  const std::int64_t exponent = value.exponent + scale;
  const bool fits = !value.exponent_beyond_bounds && count <= digits_max &&
                    exponent >= -digits_max && exponent <= digits_max;
  if (!fits) return std::unexpected("has more digits than an amount");
  std::string out = value.negative ? "-" : "";
  if (exponent >= 0) return out + digits + std::string(static_cast<std::size_t>(exponent), '0');
  const std::int64_t whole = count + exponent;
  if (whole > 0) {
    const auto point = static_cast<std::size_t>(whole);
    return out + digits.substr(0, point) + "." + digits.substr(point);
  }
  return out + "0." + std::string(static_cast<std::size_t>(-whole), '0') + digits;
}

}  // namespace idem::compare
