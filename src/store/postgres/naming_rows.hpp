#pragma once

#include "core/naming/naming.hpp"
#include "store/postgres/connection.hpp"

/// How routes name operations, as it lies in idem.identity and idem.route_names. Within the
/// transaction that is open.
namespace idem::postgres {

Task<std::expected<Naming, Failure>> read_naming(Connection& connection);
Task<QueryResult> write_naming(Connection& connection, const Naming& naming);

}  // namespace idem::postgres
