#include "library/own_values.hpp"

namespace idem::library {

std::int64_t number_of(const SqlValue& value) noexcept {
  const auto* const number = std::get_if<std::int64_t>(&value);
  return number != nullptr ? *number : 0;
}

std::string text_of(const SqlValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : std::string();
}

bool is_null(const SqlValue& value) noexcept {
  return std::holds_alternative<std::monostate>(value);
}

std::expected<bool, std::string> has_row(const RowsOr& rows) {
  if (!rows) return std::unexpected(rows.error());
  return !rows->empty();
}

}  // namespace idem::library
