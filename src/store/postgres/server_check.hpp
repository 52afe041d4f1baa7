#pragma once

#include "store/postgres/connection.hpp"

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>

/// Whether a server may hold this store: what each new connection is asked before it is used.
namespace idem::postgres {

/// These name everything by its schema: what has none is looked for on the session's path, into
/// which others may have put something.
extern const std::string server_check_sql;
/// Of its answer: why the server, or the role, is not safe. A sentence. `backend`: the number of
/// the server's process, as libpq was told it.
std::optional<std::string> why_unsafe(const Rows& rows, int backend);

/// The store, of which schema it is now (another node may have brought a newer one meanwhile), and
/// the last fence that it gave out; null where this role may not see that.
inline constexpr const char* which_store_sql =
    "SELECT i.store_id,"
    " (SELECT pg_catalog.max(v.version)::pg_catalog.int4 FROM idem.schema_version v),"
    " (SELECT f.checksum FROM idem.schema_functions f ORDER BY f.number DESC LIMIT 1),"
    " CASE WHEN pg_catalog.has_sequence_privilege('idem.fences', 'USAGE, SELECT')"
    " THEN pg_catalog.pg_sequence_last_value('idem.fences'::pg_catalog.regclass) END"
    " FROM idem.identity i";
/// 0: it is not told, or there was none yet.
Fence fence_in(const Rows& rows);
std::expected<Uuid, std::string> store_id_in(const Rows& rows);
/// Why the rows of `which_store_sql` are not of this store as this program left it. A sentence.
std::optional<std::string> why_not_this_store(const Rows& rows, const Uuid& store_id);

}  // namespace idem::postgres
