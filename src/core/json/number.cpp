#include "core/json/number.hpp"

#include "core/bytes/ascii.hpp"
#include "core/json/decimal.hpp"

#include <idem/assert.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace idem {
namespace {

// Every integer of so many digits is a double and is its own ECMAScript rendering (10^15 < 2^53).
constexpr std::size_t exact_integer_digits_max = 15;

// The fewest digits that name a finite positive double and no other, nearest to it among those:
// ±digits × 10^exponent, no zero at either end.
struct ShortestDecimal {
  std::array<char, 17> digits;
  std::size_t count = 0;
  int exponent = 0;

  std::string_view text() const noexcept { return {digits.data(), count}; }
};

ShortestDecimal shortest_decimal(double magnitude) noexcept {
  char buffer[32];  // "d.dddddddddddddddde-ddd" has 24
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, magnitude, std::chars_format::scientific);
  IDEM_ASSERT(error == std::errc());
  ShortestDecimal shortest;
  const char* at = buffer;
  for (; *at != 'e'; ++at) {
    if (*at == '.') continue;
    IDEM_ASSERT(shortest.count < shortest.digits.size());
    shortest.digits[shortest.count++] = *at;
  }
  ++at;
  if (*at == '+') ++at;  // from_chars accepts a minus sign only
  std::from_chars(at, end, shortest.exponent);
  shortest.exponent -= static_cast<int>(shortest.count) - 1;
  while (shortest.count > 1 && shortest.digits[shortest.count - 1] == '0') {
    --shortest.count;
    ++shortest.exponent;
  }
  return shortest;
}

// ECMA-262 §6.1.6.1.20, steps 6 to 12, in its letters: k digits, the point behind the n-th.
void append_ecmascript(std::string& out, bool negative, const ShortestDecimal& shortest) {
  const std::string_view digits = shortest.text();
  const int k = static_cast<int>(digits.size());
  const int n = shortest.exponent + k;
  if (negative) out += '-';
  if (k <= n && n <= 21) {
    out += digits;
    out.append(static_cast<std::size_t>(n - k), '0');
  } else if (0 < n && n <= 21) {
    out += digits.substr(0, static_cast<std::size_t>(n));
    out += '.';
    out += digits.substr(static_cast<std::size_t>(n));
  } else if (-6 < n && n <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-n), '0');
    out += digits;
  } else {
    out += digits[0];
    if (k > 1) {
      out += '.';
      out += digits.substr(1);
    }
    out += n - 1 < 0 ? "e-" : "e+";
    char exponent[8];
    const auto end = std::to_chars(exponent, exponent + sizeof exponent, std::abs(n - 1)).ptr;
    out.append(exponent, end);
  }
}

// The nearest double (ties to even), 0 with the literal's sign when it underflows, nothing when it
// overflows.
std::optional<double> nearest_double(std::string_view literal) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  IDEM_ASSERT(end == literal.data() + literal.size());
  if (error == std::errc() && std::isfinite(value)) return value;
  // "Out of range" does not say at which end. A value that overflows is far above 1 and one that
  // underflows far below, so that the sign of the decimal exponent of the first digit decides.
  const double zero = literal.starts_with('-') ? -0.0 : 0.0;
  const ExactDecimal exact = exact_decimal(literal);
  if (exact.exponent_beyond_bounds) {
    if (literal.find("e-") == literal.npos && literal.find("E-") == literal.npos) return {};
    return zero;
  }
  const bool huge = exact.exponent + static_cast<std::int64_t>(exact.digit_count()) > 0;
  return huge ? std::optional<double>() : zero;
}

std::string_view digits_of(std::string_view text, const NumberLiteral& literal) noexcept {
  return text.substr(literal.begin, literal.end - literal.begin);
}

JsonError overflow(const NumberLiteral& literal) noexcept {
  return {literal.begin, "number overflows a double"};
}

bool same_value(const ExactDecimal& exact, const ShortestDecimal& shortest) noexcept {
  const std::string_view digits = shortest.text();
  return exact.exponent == shortest.exponent && exact.digit_count() == digits.size() &&
         digits.starts_with(exact.head) && digits.ends_with(exact.tail);
}

}  // namespace

inline namespace v0_1 {

std::string ecmascript_number(double value) {
  IDEM_ASSERT(std::isfinite(value));
  std::string out;
  if (value == 0) return "0";
  append_ecmascript(out, value < 0, shortest_decimal(std::fabs(value)));
  return out;
}

}  // namespace v0_1

std::expected<NumberLiteral, JsonError> scan_number(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  const auto at_digit = [&] { return at < text.size() && is_digit(text[at]); };
  const auto at_either = [&](char a, char b) {
    return at < text.size() && (text[at] == a || text[at] == b);
  };
  const auto take_digits = [&] {
    const bool some = at_digit();
    while (at_digit()) ++at;
    return some;
  };
  const auto refuse = [&] { return std::unexpected(JsonError{at, "invalid number"}); };

  NumberLiteral literal{.begin = begin};
  if (at_either('-', '-')) ++at;
  if (at_either('0', '0')) {
    ++at;
    if (at_digit()) return refuse();
  } else if (!take_digits()) {
    return refuse();
  }
  if (at_either('.', '.')) {
    literal.integer = false;
    ++at;
    if (!take_digits()) return refuse();
  }
  if (at_either('e', 'E')) {
    literal.integer = false;
    ++at;
    if (at_either('+', '-')) ++at;
    if (!take_digits()) return refuse();
  }
  literal.end = at;
  return literal;
}

std::expected<double, JsonError> double_of(std::string_view text, const NumberLiteral& literal) {
  const std::optional<double> value = nearest_double(digits_of(text, literal));
  if (!value) return std::unexpected(overflow(literal));
  return *value;
}

std::expected<void, JsonError> append_number(std::string& out, std::string_view text,
                                             const NumberLiteral& literal, NumberForm form) {
  const std::string_view number = digits_of(text, literal);
  if (literal.integer && number.size() <= exact_integer_digits_max && number != "-0") {
    out += number;
    return {};
  }
  const std::optional<double> value = nearest_double(number);
  const bool negative = number.starts_with('-');
  if (form == NumberForm::ecmascript) {
    if (!value) return std::unexpected(overflow(literal));
    if (*value == 0) {
      out += '0';
    } else {
      append_ecmascript(out, negative, shortest_decimal(std::fabs(*value)));
    }
    return {};
  }
  const ExactDecimal exact = exact_decimal(number);
  if (exact.is_zero()) {
    out += '0';
    return {};
  }
  if (exact.exponent_beyond_bounds) {
    return std::unexpected(JsonError{literal.begin, "exponent too long"});
  }
  if (value && *value != 0) {
    const ShortestDecimal shortest = shortest_decimal(std::fabs(*value));
    if (same_value(exact, shortest)) {
      append_ecmascript(out, negative, shortest);
      return {};
    }
  }
  append_exact(out, exact);
  return {};
}

}  // namespace idem
