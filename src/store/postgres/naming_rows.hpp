#pragma once

#include "core/naming/naming.hpp"
#include "store/postgres/connection.hpp"

/// How routes name operations, in idem.identity and idem.route_names. Within the open transaction.
namespace idem::postgres {

Task<std::expected<Naming, Failure>> read_naming(Connection& connection);
Task<QueryResult> write_naming(Connection& connection, const Naming& naming);

}  // namespace idem::postgres
