#pragma once

#include "store/mysql/connection.hpp"
#include "store/mysql/identity.hpp"
#include "store/mysql/mysql_store.hpp"
#include "store/mysql/server_check.hpp"
#include "store/mysql/server_in_use.hpp"

#include <idem/store.hpp>

/// The steps of a connection before the store uses it.
namespace idem::mysql {

struct Opened {
  Identity identity;
  StoreId store_id{};  ///< Tells this store from every other.
  bool is_new = false;
  ServerCheck server;
};

/// Checks the server, sets up or checks the schema, and settles the identity, under a lock for
/// which nodes that start together queue.
Task<std::expected<Opened, Refusal>> open_database(Connection& connection,
                                                   const IdentitySettings& settings,
                                                   const MysqlOptions& options);

/// Checks a new connection: the same store, the same schema, a safe server that has the attempt
/// `known`, if there is one. The error is for people.
Task<std::expected<ServerCheck, std::string>> check_again(Connection& connection,
                                                          const StoreId& store_id,
                                                          std::optional<KnownAttempt> known);

/// AdoptRoutes, in a transaction of its own; refused if another node began to name records by other
/// settings than `settings`, or made another store. After a failure a transaction may be open.
Task<std::expected<AdoptRoutes::Reply, Failure>> adopt_routes(Connection& connection,
                                                              const AdoptRoutes& verb,
                                                              const IdentitySettings& settings,
                                                              const StoreId& store_id);

}  // namespace idem::mysql
