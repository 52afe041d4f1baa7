#pragma once

#include "store/postgres/connection.hpp"

#include <idem/transaction.hpp>

/// A service's values on their way to the server and back.
namespace idem::postgres {

/// For PQsendQueryParams. Texts and NULLs are sent without a type, so that the server infers it
/// from their place: a date, a jsonb. The error names the value that cannot be sent.
class SqlParams {
 public:
  static std::expected<SqlParams, std::string> of(std::span<const SqlValue> values);
  /// Valid as long as this.
  Params::Raw raw() const;

 private:
  struct Place {
    std::uint32_t type = 0;
    bool is_null = false;
    bool is_binary = false;
    std::string bytes;  ///< Big-endian if it is a number.
  };
  std::vector<Place> places_;
};

/// From a result in text form.
SqlRows to_sql_rows(const Rows& rows);

/// The keyword by which a statement begins, ends or nests a transaction; empty: it does not. Skips
/// comments before it as the server does (PostgreSQL documentation, "Lexical Structure").
std::string_view transaction_command(std::string_view sql);

/// The effects that a statement may have beside its rows, by its keyword.
enum class Does : std::uint8_t {
  rows,   ///< Nothing: it reads or changes rows.
  aside,  ///< Effects that do not change the meaning of other statements.
  more,   ///< It may make or drop objects that prepared statements name.
};
Does what_does(std::string_view sql);

/// True if the text contains the name of the records' schema.
bool may_ask_for_records(std::string_view sql) noexcept;

}  // namespace idem::postgres
