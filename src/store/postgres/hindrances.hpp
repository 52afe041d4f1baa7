#pragma once

#include "store/postgres/connection.hpp"

#include <string>
#include <vector>

namespace idem::postgres {

/// What other sessions do that an operator should know of. Sentences, which name the session and
/// say how to end it.
struct Hindrances {
  /// Transactions, prepared ones and replication slots that keep vacuum from the rows of the
  /// tables, so that these grow and every call gets slower.
  std::vector<std::string> of_vacuum;
  /// Locks on the store's tables for which calls wait.
  std::vector<std::string> of_calls;
};

/// As far as the role may see other sessions (pg_monitor sees all); empty if the server does not
/// say. On a search path of pg_catalog alone.
Task<Hindrances> look_for_hindrances(Connection& connection);

}  // namespace idem::postgres
