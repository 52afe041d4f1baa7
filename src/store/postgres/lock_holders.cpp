#include "store/postgres/lock_holders.hpp"

#include "store/postgres/cells.hpp"

#include <idem/limits.hpp>

namespace idem::postgres {
namespace {

constexpr const char* holders_sql =
    "SELECT COALESCE(pg_catalog.string_agg(pg_catalog.format('pid %s of user %s', l.pid, "
    "a.usename),"
    " ', '), '')"
    " FROM pg_catalog.pg_locks l"
    " LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid"
    " WHERE l.granted AND l.locktype OPERATOR(pg_catalog.=) 'advisory'"
    " AND l.mode OPERATOR(pg_catalog.=) 'ExclusiveLock'"
    " AND l.classid OPERATOR(pg_catalog.=) 1229210957 AND l.objid OPERATOR(pg_catalog.=) 1"
    " AND l.objsubid OPERATOR(pg_catalog.=) 2 AND l.database OPERATOR(pg_catalog.=)"
    " (SELECT d.oid FROM pg_catalog.pg_database d"
    " WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())";

}  // namespace

Task<std::string> who_holds_the_generation(Connection& connection) {
  const Params none;
  const QueryResult answer = co_await connection.ask(holders_sql, none, limits::store_reply_max);
  if (!answer || answer->size() != 1) co_return std::string();
  co_return from_text(answer->cell(0, 0));
}

}  // namespace idem::postgres
