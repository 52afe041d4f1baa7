-- A scope's quota (src/core/transitions/quota.hpp): new keys in a time, records that have not expired, and bytes. A
-- reserve checks it only where it would make a record, so that it never refuses a retry. The transaction of each record
-- that a reserve with a quota made counts it.

CREATE OR REPLACE FUNCTION idem.add_usage(of_scope text, active bigint, bytes bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF active = 0 AND bytes = 0 THEN RETURN; END IF;
  INSERT INTO idem.usage AS u VALUES (of_scope, pg_backend_pid(), add_usage.active, add_usage.bytes)
  ON CONFLICT ON CONSTRAINT usage_pkey
    DO UPDATE SET active = u.active + excluded.active, bytes = u.bytes + excluded.bytes;
END $$;

-- Where the number or the rate of keys is limited, one transaction at a time counts a scope's new keys.
CREATE OR REPLACE FUNCTION idem.lock_scope(of_scope text, q idem.quota) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF q.keys > 0 OR q.key_interval > 0 THEN
    PERFORM pg_advisory_xact_lock(1229210958, hashtext(of_scope COLLATE "C"));
  END IF;
END $$;

-- How many new keys may begin in this scope now. `freed_...`: counts of the row that the new record replaces.
CREATE OR REPLACE FUNCTION idem.keys_left(of_scope text, q idem.quota, at timestamptz, freed_active bigint DEFAULT 0,
                               freed_bytes bigint DEFAULT 0) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
  next bigint;
  left_over bigint := 1000000;
BEGIN
  IF q.keys > 0 OR q.bytes > 0 THEN
    SELECT coalesce(sum(u.active), 0) - freed_active, coalesce(sum(u.bytes), 0) - freed_bytes INTO active, bytes
      FROM idem.usage u WHERE u.scope = of_scope COLLATE "C";
    IF q.keys > 0 THEN left_over := least(left_over, q.keys - active); END IF;
    IF q.bytes > 0 THEN left_over := least(left_over, (q.bytes - bytes) / idem.record_charge()); END IF;
  END IF;
  IF q.key_interval > 0 AND left_over > 0 THEN
    SELECT r.next_key INTO next FROM idem.rates r WHERE r.scope = of_scope COLLATE "C";
    left_over := least(left_over, q.at_once
      - div(greatest(coalesce(next, 0) - idem.us(at), 0)::numeric + q.key_interval - 1, q.key_interval)::bigint);
  END IF;
  RETURN greatest(left_over, 0);
END $$;

-- How long a scope whose quota is used up has to wait, ms. Where keys have to end first: until one of them does on
-- average, as each lives for `retention`.
CREATE OR REPLACE FUNCTION idem.quota_retry_in(of_scope text, q idem.quota, retention bigint, at timestamptz)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
  next bigint;
BEGIN
  SELECT coalesce(sum(u.active), 0), coalesce(sum(u.bytes), 0) INTO active, bytes
    FROM idem.usage u WHERE u.scope = of_scope COLLATE "C";
  IF q.keys > 0 AND active >= q.keys OR q.bytes > 0 AND bytes + idem.record_charge() > q.bytes THEN
    RETURN least(greatest(retention / greatest(active, 1), 1000), 3600000);
  END IF;
  SELECT r.next_key INTO next FROM idem.rates r WHERE r.scope = of_scope COLLATE "C";
  next := greatest(coalesce(next, 0), idem.us(at));
  RETURN greatest((next - q.key_interval * (q.at_once - 1) - idem.us(at) + 999) / 1000, 1);
END $$;

-- Counts so many new keys in the rate.
CREATE OR REPLACE FUNCTION idem.advance_key_rate(of_scope text, q idem.quota, number bigint, at timestamptz)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF q.key_interval = 0 THEN RETURN; END IF;
  INSERT INTO idem.rates AS r VALUES (of_scope, idem.us(at) + number * q.key_interval)
  ON CONFLICT ON CONSTRAINT rates_pkey
    DO UPDATE SET next_key = greatest(r.next_key, idem.us(at)) + number * q.key_interval;
END $$;

-- NULL: one new key may begin, and the rate counts it. Otherwise how long to wait, ms.
CREATE OR REPLACE FUNCTION idem.refuse_new_key(of_scope text, q idem.quota, retention bigint, at timestamptz,
                                    freed_active bigint DEFAULT 0, freed_bytes bigint DEFAULT 0)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.lock_scope(of_scope, q);
  IF idem.keys_left(of_scope, q, at, freed_active, freed_bytes) = 0 THEN
    RETURN idem.quota_retry_in(of_scope, q, retention, at);
  END IF;
  PERFORM idem.advance_key_rate(of_scope, q, 1, at);
  RETURN NULL;
END $$;

-- NULL: a record that is counted already may grow by `more` bytes. Otherwise how long to wait, ms.
CREATE OR REPLACE FUNCTION idem.refuse_more_bytes(of_scope text, q idem.quota, more bigint, retention bigint)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
BEGIN
  -- A bound below one record is checked for new keys only.
  IF q.bytes < idem.record_charge() THEN RETURN NULL; END IF;
  SELECT coalesce(sum(u.active), 0), coalesce(sum(u.bytes), 0) INTO active, bytes
    FROM idem.usage u WHERE u.scope = of_scope COLLATE "C";
  IF bytes + more <= q.bytes THEN RETURN NULL; END IF;
  RETURN least(greatest(retention / greatest(active, 1), 1000), 3600000);
END $$;

CREATE OR REPLACE FUNCTION idem.quota_outcome(r idem.reservation, retry_in bigint) RETURNS idem.outcome LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'quota_exceeded';
  o.operation := r.id;
  o.retry_in := quota_outcome.retry_in;
  o.ended_lease := false;
  RETURN o;
END $$;

-- Sums up the counts of sessions that are over. Waits for no lock.
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
  -- A moment in the past limits no key.
  DELETE FROM idem.rates r USING (
    SELECT t.ctid AS place FROM idem.rates t WHERE t.next_key < idem.us(idem.now()) LIMIT most FOR UPDATE SKIP LOCKED
  ) n WHERE r.ctid = n.place;
  RETURN folded;
END $$;
