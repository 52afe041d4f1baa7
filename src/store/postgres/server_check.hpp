#pragma once

#include "store/postgres/connection.hpp"

#include <expected>
#include <optional>
#include <string>

/// Whether a server may hold this store; checked on each new connection before its use.
namespace idem::postgres {

/// These statements name everything by its schema, because others may have put objects on the
/// session's search path.
extern const std::string server_check_sql;
/// From its result: why the server, or the role, is not safe. A sentence. `backend`: the server's
/// process id as libpq received it.
std::optional<std::string> why_unsafe(const Rows& rows, int backend);

/// The store, its current schema (another node may have upgraded it), and the last fence that it
/// gave out; null if this role may not see that.
inline constexpr const char* which_store_sql =
    "SELECT i.store_id,"
    " (SELECT pg_catalog.max(v.version)::pg_catalog.int4 FROM idem.schema_version v),"
    " (SELECT f.checksum FROM idem.schema_functions f ORDER BY f.number DESC LIMIT 1),"
    " CASE WHEN pg_catalog.has_sequence_privilege('idem.fences', 'USAGE, SELECT')"
    " THEN pg_catalog.pg_sequence_last_value('idem.fences'::pg_catalog.regclass) END"
    " FROM idem.identity i";
/// None: this role may not see it, or there was none yet.
std::optional<Fence> fence_in(const Rows& rows);
std::expected<Uuid, std::string> store_id_in(const Rows& rows);
/// Why the rows of `which_store_sql` are not of this store as this program left it. A sentence.
std::optional<std::string> why_not_this_store(const Rows& rows, const Uuid& store_id);

}  // namespace idem::postgres
