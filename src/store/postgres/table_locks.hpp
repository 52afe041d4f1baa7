#pragma once

#include "store/postgres/connection.hpp"

#include <optional>
#include <string>

namespace idem::postgres {

/// Locks all of the store's tables against everybody else, until the open transaction ends, and
/// keeps out reserves, which queue at the generation's lock. The order in which a file of
/// schema/postgres/tables changes tables is then of no importance to others.
///
/// It waits for open transactions only in short tries with pauses between them, so that no call of
/// another gateway waits for long and no service has to give way in a deadlock. If they do not end,
/// it returns a sentence for people.
Task<std::optional<std::string>> lock_all_tables(Connection& connection);

}  // namespace idem::postgres
