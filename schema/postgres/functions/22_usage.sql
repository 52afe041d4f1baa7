-- What a scope may have (src/core/transitions/quota.hpp): new keys in a time, records that have not expired, and bytes. Decided in
-- the reserve, where it would make a record, so that no retry is ever refused for it; and counted in the transaction of
-- each record that was made by a reserve with a quota.

CREATE OR REPLACE FUNCTION idem.note_usage(whose text, active bigint, bytes bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF active = 0 AND bytes = 0 THEN RETURN; END IF;
  INSERT INTO idem.usage AS u VALUES (whose, pg_backend_pid(), note_usage.active, note_usage.bytes)
  ON CONFLICT ON CONSTRAINT usage_pkey
    DO UPDATE SET active = u.active + excluded.active, bytes = u.bytes + excluded.bytes;
END $$;

CREATE OR REPLACE FUNCTION idem.hold_scope(whose text, q idem.quota) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF q.keys > 0 OR q.key_interval > 0 THEN PERFORM pg_advisory_xact_lock(1229210958, hashtext(whose COLLATE "C")); END IF;
END $$;

-- How many new keys may begin in this scope now. `freed_...`: what lies there, and gives way.
CREATE OR REPLACE FUNCTION idem.room(whose text, q idem.quota, at timestamptz, freed_active bigint DEFAULT 0,
                          freed_bytes bigint DEFAULT 0) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
  next bigint;
  room bigint := 1000000;
BEGIN
  IF q.keys > 0 OR q.bytes > 0 THEN
    SELECT coalesce(sum(u.active), 0) - freed_active, coalesce(sum(u.bytes), 0) - freed_bytes INTO active, bytes
      FROM idem.usage u WHERE u.scope = whose COLLATE "C";
    IF q.keys > 0 THEN room := least(room, q.keys - active); END IF;
    IF q.bytes > 0 THEN room := least(room, (q.bytes - bytes) / idem.record_charge()); END IF;
  END IF;
  IF q.key_interval > 0 AND room > 0 THEN
    SELECT r.next_key INTO next FROM idem.rates r WHERE r.scope = whose COLLATE "C";
    room := least(room, q.at_once
      - div(greatest(coalesce(next, 0) - idem.us(at), 0)::numeric + q.key_interval - 1, q.key_interval)::bigint);
  END IF;
  RETURN greatest(room, 0);
END $$;

-- Of a scope that has no room: when to ask again, ms. Where keys have to end first that is when one of them does on
-- average, as each lives for `retention`.
CREATE OR REPLACE FUNCTION idem.retry_in(whose text, q idem.quota, retention bigint, at timestamptz) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
  next bigint;
BEGIN
  SELECT coalesce(sum(u.active), 0), coalesce(sum(u.bytes), 0) INTO active, bytes FROM idem.usage u WHERE u.scope = whose COLLATE "C";
  IF q.keys > 0 AND active >= q.keys OR q.bytes > 0 AND bytes + idem.record_charge() > q.bytes THEN
    RETURN least(greatest(retention / greatest(active, 1), 1000), 3600000);
  END IF;
  SELECT r.next_key INTO next FROM idem.rates r WHERE r.scope = whose COLLATE "C";
  next := greatest(coalesce(next, 0), idem.us(at));
  RETURN greatest((next - q.key_interval * (q.at_once - 1) - idem.us(at) + 999) / 1000, 1);
END $$;

-- So many new keys have begun.
CREATE OR REPLACE FUNCTION idem.pass_keys(whose text, q idem.quota, number bigint, at timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF q.key_interval = 0 THEN RETURN; END IF;
  INSERT INTO idem.rates AS r VALUES (whose, idem.us(at) + number * q.key_interval)
  ON CONFLICT ON CONSTRAINT rates_pkey
    DO UPDATE SET next_key = greatest(r.next_key, idem.us(at)) + number * q.key_interval;
END $$;

-- One new key: none where it may begin, else when to ask again.
CREATE OR REPLACE FUNCTION idem.refuse_key(whose text, q idem.quota, retention bigint, at timestamptz, freed_active bigint DEFAULT 0,
                                freed_bytes bigint DEFAULT 0) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.hold_scope(whose, q);
  IF idem.room(whose, q, at, freed_active, freed_bytes) = 0 THEN RETURN idem.retry_in(whose, q, retention, at); END IF;
  PERFORM idem.pass_keys(whose, q, 1, at);
  RETURN NULL;
END $$;

-- Whether a record that is counted already may grow by so many bytes: NULL, or when to ask again.
CREATE OR REPLACE FUNCTION idem.refuse_growth(whose text, q idem.quota, more bigint, retention bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
BEGIN
  -- Without room for any record it is asked of new keys only (no_room), as one without a bound.
  IF q.bytes < idem.record_charge() THEN RETURN NULL; END IF;
  SELECT coalesce(sum(u.active), 0), coalesce(sum(u.bytes), 0) INTO active, bytes FROM idem.usage u WHERE u.scope = whose COLLATE "C";
  IF bytes + more <= q.bytes THEN RETURN NULL; END IF;
  RETURN least(greatest(retention / greatest(active, 1), 1000), 3600000);
END $$;

CREATE OR REPLACE FUNCTION idem.exceeds(r idem.reservation, retry_in bigint) RETURNS idem.outcome LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'quota_exceeded';
  o.operation := r.id;
  o.retry_in := exceeds.retry_in;
  o.ended_lease := false;
  RETURN o;
END $$;

-- Sums up what sessions that are over have counted. Waits for nobody.
CREATE OR REPLACE FUNCTION idem.fold_usage(most integer) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  alive integer[] := (SELECT array_agg(a.pid) FROM pg_stat_activity a);
  folded integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(1229210957, 4) THEN RETURN 0; END IF;
  WITH next AS MATERIALIZED (
    SELECT u.ctid AS place FROM idem.usage u WHERE u.lane <> 0 AND u.lane <> ALL (alive) LIMIT most
      FOR UPDATE SKIP LOCKED
  ), taken AS (
    DELETE FROM idem.usage u USING next n WHERE u.ctid = n.place RETURNING u.scope, u.active, u.bytes
  ), kept AS (
    INSERT INTO idem.usage AS u SELECT t.scope, 0, sum(t.active), sum(t.bytes) FROM taken t GROUP BY t.scope
    ON CONFLICT ON CONSTRAINT usage_pkey
      DO UPDATE SET active = u.active + excluded.active, bytes = u.bytes + excluded.bytes
  )
  SELECT count(*) INTO folded FROM taken;
  DELETE FROM idem.usage u WHERE u.lane = 0 AND u.active = 0 AND u.bytes = 0;
  -- A moment that is over is as good as none.
  DELETE FROM idem.rates r USING (
    SELECT t.ctid AS place FROM idem.rates t WHERE t.next_key < idem.us(idem.now()) LIMIT most FOR UPDATE SKIP LOCKED
  ) n WHERE r.ctid = n.place;
  RETURN folded;
END $$;
