#pragma once

#include "store/postgres/connection.hpp"

#include <optional>
#include <string>

/// The schema that a database has, and the one that this program brings.
namespace idem::postgres {

/// Makes the schema in a database without one. With `may_change`, applies what the program has and
/// the database has not: tables by their number, and all functions where their checksum differs.
/// Otherwise, and wherever a newer program was there, a difference is refused: the sentence.
/// Within the transaction that is open, under the lock that all starts take.
Task<std::optional<std::string>> bring_schema(Connection& connection, bool may_change);

}  // namespace idem::postgres
