#pragma once

#include "store/postgres/connection.hpp"

#include <optional>
#include <string>

/// The schema of a database, and the one that this program needs.
namespace idem::postgres {

/// Makes the schema in a database without one. With `may_change`, upgrades it: missing steps of the
/// tables, and all functions if their checksum differs. Otherwise, and after a newer program, it
/// refuses a difference with the returned sentence. Within the open transaction, under the lock of
/// all starts.
Task<std::optional<std::string>> bring_schema(Connection& connection, bool may_change);

}  // namespace idem::postgres
