#include "store/postgres/table_locks.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

namespace idem::postgres {
namespace {

/// SQL of its own, because the functions in the database may be of any older program.
///
/// First SHARE UPDATE EXCLUSIVE: an autovacuum gives way to a wait above deadlock_timeout only, and
/// no try is as long. Nobody else waits for that lock but other vacuums and changes of the schema.
///
/// Then each round has one budget for all its waits, below deadlock_timeout: a session that waits
/// for this transaction while it waits for them goes on before the server looks for a deadlock. The
/// generation's lock comes first, as in a reserve. A partition is locked with its parent.
constexpr std::string_view locking = R"(DO $$
DECLARE
  tables regclass[] := ARRAY(SELECT c.oid FROM pg_class c
    WHERE c.relnamespace = 'idem'::pg_catalog.regnamespace AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition AND pg_has_role(c.relowner, 'USAGE') ORDER BY c.oid);
  before text := current_setting('lock_timeout');
  began timestamptz;
  t regclass;
  holders text;
BEGIN
  BEGIN
    FOREACH t IN ARRAY tables LOOP
      EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', t);
    END LOOP;
    FOR round IN 1..{rounds} LOOP
      BEGIN
        began := clock_timestamp();
        PERFORM set_config('lock_timeout', '{budget}', true);
        PERFORM pg_advisory_xact_lock(1229210957, 1);
        FOREACH t IN ARRAY tables LOOP
          PERFORM set_config('lock_timeout', greatest(1, {budget}
            - (extract(epoch FROM clock_timestamp() - began) * 1000)::int)::pg_catalog.text, true);
          EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', t);
        END LOOP;
        PERFORM set_config('lock_timeout', before, true);
        RETURN;
      EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        PERFORM pg_sleep({pause} / 1000.0);
      END;
    END LOOP;
  EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    NULL;
  END;
  SELECT string_agg(DISTINCT l.pid::pg_catalog.text, ', ') INTO holders FROM pg_locks l
    WHERE l.granted AND l.pid <> pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND (l.relation IN (SELECT c.oid FROM pg_class c
          WHERE c.relnamespace = 'idem'::pg_catalog.regnamespace)
        OR l.locktype = 'advisory' AND l.classid = 1229210957 AND l.objid = 1 AND l.objsubid = 2);
  RAISE EXCEPTION
    'open transactions hold the store''s tables, which were not upgraded: nothing has changed%',
    coalesce('; end them (pid ' || holders || ' in pg_stat_activity), and start again',
      '; start again')
    USING ERRCODE = 'lock_not_available';
END $$)";

}  // namespace

Task<std::optional<std::string>> lock_all_tables(Connection& connection) {
  const std::string script =
      fmt::format(locking, fmt::arg("rounds", limits::migration_lock_rounds),
                  fmt::arg("budget", Millis(limits::migration_lock_try).count()),
                  fmt::arg("pause", Millis(limits::migration_lock_pause).count()));
  const QueryResult locked = co_await connection.run(script, limits::store_migration_max);
  if (!locked) co_return failure_text(locked.error());
  co_return std::nullopt;
}

}  // namespace idem::postgres
