#pragma once

#include <idem/transaction.hpp>

#include <optional>
#include <string_view>

/// Cells of Idem's own rows (src/store/internal_sql.hpp) as values.
namespace idem::library {

std::int64_t number_of(const SqlValue& value) noexcept;
std::string text_of(const SqlValue& value);
bool is_null(const SqlValue& value) noexcept;
inline StoreTime moment_of(const SqlValue& value) noexcept {
  return StoreTime(Millis(number_of(value)));
}
/// Of 32 hexadecimal digits in lower case.
std::optional<RecordId> id_of(std::string_view hex) noexcept;

}  // namespace idem::library
