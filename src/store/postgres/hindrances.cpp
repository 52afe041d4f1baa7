#include "store/postgres/hindrances.hpp"

#include "store/postgres/values.hpp"

#include <idem/health_limits.hpp>
#include <idem/limits.hpp>

namespace idem::postgres {
namespace {

/// A role sees the transactions of its own sessions, and those of others as a member of pg_monitor.
/// One that only reads, and is between two statements, holds back nothing.
constexpr std::string_view of_vacuum_sql = R"(
SELECT format('the transaction of pid %s (user %s, application "%s", %s) is open for %s s: vacuum'
    ' keeps every row that has ended since; end it: SELECT pg_terminate_backend(%s)', a.pid,
    a.usename, a.application_name, a.state,
    extract(epoch FROM clock_timestamp() - a.xact_start)::pg_catalog.int8, a.pid)
  FROM pg_stat_activity a
  WHERE a.pid <> pg_backend_pid() AND a.datname = current_database()
    AND a.backend_type = 'client backend' AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT
    NULL) AND a.xact_start < clock_timestamp() - make_interval(secs => $1)
UNION ALL
SELECT format('the prepared transaction %L of user %s is open for %s s: vacuum keeps every row that'
    ' has ended since; end it: ROLLBACK PREPARED %L', p.gid, p.owner,
    extract(epoch FROM clock_timestamp() - p.prepared)::pg_catalog.int8, p.gid)
  FROM pg_prepared_xacts p
  WHERE p.database = current_database()
    AND p.prepared < clock_timestamp() - make_interval(secs => $1)
UNION ALL
SELECT format('the replication slot %s holds back vacuum, and nobody reads it; if its reader is'
    ' gone: SELECT pg_drop_replication_slot(%L)', r.slot_name, r.slot_name)
  FROM pg_replication_slots r WHERE NOT r.active AND r.xmin IS NOT NULL
LIMIT $2)";

constexpr std::string_view of_calls_sql = R"(
SELECT format('pid %s of user %s holds %s on %s, for which calls wait; end it: SELECT'
    ' pg_terminate_backend(%s)', l.pid, coalesce(a.usename, '?'), l.mode,
    string_agg(c.oid::pg_catalog.regclass::pg_catalog.text, ', '), l.pid)
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.granted AND l.pid <> pg_backend_pid()
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND c.relnamespace = to_regnamespace('idem') AND c.relkind IN ('r', 'p')
    AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND coalesce(a.xact_start < clock_timestamp() - make_interval(secs => $1), true)
  GROUP BY l.pid, a.usename, l.mode
LIMIT $2)";

Task<std::vector<std::string>> sentences(Connection& connection, std::string_view sql) {
  Params params;
  params.number(std::chrono::seconds(limits::long_transaction_min).count());
  params.number(limits::hindrances_named_max);
  const QueryResult answer = co_await connection.ask(sql, params, limits::store_reply_max);
  std::vector<std::string> found;
  for (int row = 0; answer && row < answer->size(); ++row) {
    found.push_back(from_text(answer->cell(row, 0)));
  }
  co_return found;
}

}  // namespace

Task<Hindrances> look_for_hindrances(Connection& connection) {
  Hindrances found;
  found.of_vacuum = co_await sentences(connection, of_vacuum_sql);
  if (connection.is_open()) found.of_calls = co_await sentences(connection, of_calls_sql);
  co_return found;
}

}  // namespace idem::postgres
