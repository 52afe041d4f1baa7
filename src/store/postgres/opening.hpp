#pragma once

#include "core/naming/naming.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/lineage.hpp"
#include "store/postgres/postgres_store.hpp"

/// What is done once, before a store is used: by the first connection.
namespace idem::postgres {

struct Opened {
  Identity identity;
  Uuid store_id{};  ///< Tells this store from every other.
  bool is_new = false;
};

/// Checks the server, sets up or checks the schema, settles the identity: one transaction, under a
/// lock that nodes which start at one time queue for. The error is for people.
Task<std::expected<Opened, std::string>> open_database(Connection& connection,
                                                       const IdentitySettings& settings,
                                                       const PostgresOptions& options);

/// Of a connection that was made anew: the same store, of the same schema, on a server as safe. The
/// timeline of that server, not of the lineage, which another session may raise meanwhile; of a
/// server that does not tell it, what the lineage knew before it was asked.
Task<std::expected<std::int64_t, std::string>> check_again(Connection& connection,
                                                           const Uuid& store_id, Lineage& lineage);

/// AdoptRoutes, in a transaction of its own; refused where another node began to name records by
/// other settings than `settings`. The failure is the server's.
Task<std::expected<AdoptRoutes::Reply, Failure>> adopt_routes(Connection& connection,
                                                              AdoptRoutes& verb,
                                                              const IdentitySettings& settings);

}  // namespace idem::postgres
