#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace idem {

/// The exact value of a JSON number literal: ±digits × 10^exponent, where the digits are `head`
/// followed by `tail`, without zeros at either end. It views the literal and copies nothing. Equal
/// values have equal sign, digits and exponent, however they were spelled.
struct ExactDecimal {
  bool negative = false;
  std::string_view head;
  std::string_view tail;
  std::int64_t exponent = 0;
  /// The literal's own exponent has more digits than are added up; `exponent` is then meaningless.
  bool exponent_beyond_bounds = false;

  bool is_zero() const noexcept { return head.empty() && tail.empty(); }
  std::size_t digit_count() const noexcept { return head.size() + tail.size(); }
};

/// `literal` follows the grammar of RFC 8259 §6. Zero has no sign, no digits and exponent 0.
ExactDecimal exact_decimal(std::string_view literal) noexcept;

/// Appends the tagged form `#[-]digits e exponent` of a value that is not zero. No JSON text has a
/// `#` outside of a string, so this differs from all that canonicalize() writes.
void append_exact(std::string& out, const ExactDecimal& value);

}  // namespace idem
