#pragma once

#include <idem/transaction.hpp>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

/// Idem's own rows (src/store/internal_sql.hpp) as values.
namespace idem::library {

std::int64_t number_of(const SqlValue& value) noexcept;
std::string text_of(const SqlValue& value);
bool is_null(const SqlValue& value) noexcept;
inline StoreTime moment_of(const SqlValue& value) noexcept {
  return StoreTime(Millis(number_of(value)));
}

/// A statement's result, or the database's error.
using RowsOr = std::expected<SqlRows, std::string>;

/// Whether the statement returned a row.
std::expected<bool, std::string> has_row(const RowsOr& rows);

/// Each row as a value.
template <class Value>
std::expected<std::vector<Value>, std::string> values_of(const RowsOr& rows,
                                                         Value (*value_of)(const SqlRow&)) {
  if (!rows) return std::unexpected(rows.error());
  std::vector<Value> values;
  for (const SqlRow& row : *rows) values.push_back(value_of(row));
  return values;
}

}  // namespace idem::library
