#include "core/json/decimal.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

// 10^18 plus the length of any text is far inside an int64.
constexpr std::size_t exponent_digits_max = 18;

std::string_view without_leading_zeros(std::string_view digits) noexcept {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

std::string_view without_trailing_zeros(std::string_view digits) noexcept {
  const std::size_t last = digits.find_last_not_of('0');
  return digits.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// Reads "", "+05", "-12"; false when it has more digits than are added up.
bool read_exponent(std::string_view text, std::int64_t& exponent) noexcept {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  text = without_leading_zeros(text);
  if (text.size() > exponent_digits_max) return false;
  exponent = 0;
  for (const char digit : text) exponent = exponent * 10 + (digit - '0');
  if (negative) exponent = -exponent;
  return true;
}

}  // namespace

ExactDecimal exact_decimal(std::string_view literal) noexcept {
  ExactDecimal value;
  value.negative = literal.starts_with('-');
  if (value.negative) literal.remove_prefix(1);

  const std::size_t e = std::min(literal.find_first_of("eE"), literal.size());
  const std::string_view mantissa = literal.substr(0, e);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::string_view whole = mantissa.substr(0, point);
  const std::string_view fraction = mantissa.substr(std::min(point + 1, mantissa.size()));

  value.head = without_leading_zeros(whole);
  value.tail = without_trailing_zeros(fraction);
  const std::size_t fraction_digits = value.tail.size();
  std::size_t zeros_cut = 0;
  if (value.head.empty()) value.tail = without_leading_zeros(value.tail);
  if (value.tail.empty()) {
    const std::size_t before = value.head.size();
    value.head = without_trailing_zeros(value.head);
    zeros_cut = before - value.head.size();
  }
  if (value.is_zero()) return {};

  value.exponent_beyond_bounds =
      !read_exponent(literal.substr(std::min(e + 1, literal.size())), value.exponent);
  value.exponent += static_cast<std::int64_t>(zeros_cut);
  value.exponent -= static_cast<std::int64_t>(fraction_digits);
  return value;
}

void append_exact(std::string& out, const ExactDecimal& value) {
  char exponent[24];
  const auto end = std::to_chars(exponent, exponent + sizeof exponent, value.exponent).ptr;
  out += '#';
  if (value.negative) out += '-';
  out += value.head;
  out += value.tail;
  out += 'e';
  out.append(exponent, end);
}

}  // namespace idem
