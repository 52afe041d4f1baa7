#pragma once

#include "store/postgres/connection.hpp"

#include <idem/transaction.hpp>

/// A service's values on their way to the server and back.
namespace idem::postgres {

/// For PQsendQueryParams. A text is sent without a type, so that the server takes it for what
/// stands at its place, a date or a jsonb as well; so is a NULL. The error says which value cannot
/// be sent.
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
    std::string bytes;  ///< Big-endian where it is a number.
  };
  std::vector<Place> places_;
};

/// Of an answer in text form.
SqlRows to_sql_rows(const Rows& rows);

/// The keyword by which a statement begins or ends a transaction, or nests one; empty: it does
/// not. Comments before it are passed over as the server does (PostgreSQL documentation, "Lexical
/// Structure").
std::string_view transaction_command(std::string_view sql);

/// What a statement may do beyond its rows, by its keyword.
enum class Does : std::uint8_t {
  rows,   ///< Nothing: it reads or changes rows.
  aside,  ///< Nothing that other statements could mean something else by.
  more,   ///< It may make or drop things by whose names other statements were understood.
};
Does what_does(std::string_view sql);

/// Whether the schema of the records is named anywhere in it.
bool may_ask_for_records(std::string_view sql) noexcept;

}  // namespace idem::postgres
