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

std::optional<RecordId> id_of(std::string_view hex) noexcept {
  RecordId id;
  if (hex.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const auto digit = std::string_view("0123456789abcdef").find(hex[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    id.bytes[i / 2] = static_cast<std::uint8_t>(id.bytes[i / 2] << 4 | digit);
  }
  return id;
}

std::expected<bool, std::string> has_row(const RowsOr& rows) {
  if (!rows) return std::unexpected(rows.error());
  return !rows->empty();
}

}  // namespace idem::library
