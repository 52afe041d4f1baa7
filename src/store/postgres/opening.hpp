#pragma once

#include "core/naming/naming.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/lineage.hpp"
#include "store/postgres/postgres_store.hpp"

/// The steps of a store's first connection, before the store is used.
namespace idem::postgres {

struct Opened {
  Identity identity;
  Uuid store_id{};  ///< Tells this store from every other.
  bool is_new = false;
};

/// Checks the server, sets up or checks the schema, and settles the identity, in one transaction
/// under a lock for which nodes that start together queue. The error is for people.
Task<std::expected<Opened, std::string>> open_database(Connection& connection,
                                                       const IdentitySettings& settings,
                                                       const PostgresOptions& options);

/// Checks a new connection: the same store, the same schema, a safe server. Returns that server's
/// timeline, and not the lineage's, which another session may raise meanwhile. If the server does
/// not show it: the lineage's, read before the server was asked.
Task<std::expected<std::int64_t, std::string>> check_again(Connection& connection,
                                                           const Uuid& store_id, Lineage& lineage);

/// AdoptRoutes, in a transaction of its own; refused if another node began to name records by other
/// settings than `settings`, or made another store. The failure is the server's.
Task<std::expected<AdoptRoutes::Reply, Failure>> adopt_routes(Connection& connection,
                                                              const AdoptRoutes& verb,
                                                              const IdentitySettings& settings,
                                                              const Uuid& store_id);

}  // namespace idem::postgres
