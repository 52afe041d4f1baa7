-- What time does to records (§3, §19), and what the dispatcher takes. Rows that somebody holds are left
-- for the next round.

CREATE TYPE idem.lifecycle_step AS (operation uuid, before idem.state, after idem.state);

-- Puts records off again, those that go together into one row. `moments`: when each may be due.
CREATE FUNCTION idem.put_off_leases(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO idem.lease_looks
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, row_number() OVER (ORDER BY r.moment) / 256 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part
$$;
CREATE FUNCTION idem.put_off_expiries(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO idem.expiry_looks
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, row_number() OVER (ORDER BY r.moment) / 256 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part
$$;

-- Ends up to `most` expired leases and pending requests past their expiry. What is due and held by somebody is
-- looked at again a moment later.
CREATE FUNCTION idem.sweep(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  before idem.slots;
  held idem.slots;
  s idem.slots;
  at timestamptz := idem.now();
  asked uuid[];
  due timestamptz;
  later uuid[] := '{}';
  moments timestamptz[] := '{}';
  ended integer := 0;
  step idem.lifecycle_step;
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM idem.be_durable();
  WHILE ended < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place FROM idem.lease_looks l WHERE l.due_at <= at ORDER BY l.due_at LIMIT 32
        FOR UPDATE SKIP LOCKED
    ), taken AS (
      DELETE FROM idem.lease_looks l USING next n WHERE l.ctid = n.place RETURNING l.ids
    )
    SELECT array_agg(DISTINCT i.id) INTO asked FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
    EXIT WHEN asked IS NULL;
    FOR before IN
      SELECT t.* FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE t.state IN ('pending', 'in_progress')
    LOOP
      due := CASE before.state WHEN 'pending' THEN before.expires_at ELSE before.locked_until END;
      IF due <= at THEN
        -- Only a reserve takes up what may be resumed or run again.
        CONTINUE WHEN before.state = 'in_progress' AND before.dispatched AND before.lease_policy <> 'unknown';
        IF ended >= most THEN
          later := later || before.id;
          moments := moments || due;
          CONTINUE;
        END IF;
        SELECT * INTO held FROM idem.slots t WHERE t.id = before.id FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
          s := idem.swept(held, at);
          IF s IS DISTINCT FROM held THEN
            PERFORM idem.note_ended_lease(held, s.state, 'sweeper', at);
            PERFORM idem.put(s);
            step := ROW(s.id, held.state, s.state);
            RETURN NEXT step;
            ended := ended + 1;
            CONTINUE;
          END IF;
          CONTINUE WHEN held.state NOT IN ('pending', 'in_progress');
          due := CASE held.state WHEN 'pending' THEN held.expires_at ELSE held.locked_until END;
        END IF;
      END IF;
      later := later || before.id;
      moments := moments || due;
    END LOOP;
  END LOOP;
  IF cardinality(later) > 0 THEN PERFORM idem.put_off_leases(later, moments); END IF;
END $$;

-- Drops up to `most` answers, failed records and tombstones that are due; never what is in progress or
-- unknown. A large answer's bytes go with the table of their day (idem.drop_old_days()).
CREATE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  asked uuid[];
  handled uuid[];
  states idem.state[];
  ends timestamptz[];
  later uuid[] := '{}';
  moments timestamptz[] := '{}';
  more uuid[];
  theirs timestamptz[];
  done integer := 0;
  over uuid[] := '{}';
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM idem.be_durable();
  WHILE done < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place FROM idem.expiry_looks l WHERE l.due_at <= at ORDER BY l.due_at LIMIT 8
        FOR UPDATE SKIP LOCKED
    ), taken AS (
      DELETE FROM idem.expiry_looks l USING next n WHERE l.ctid = n.place RETURNING l.ids
    )
    SELECT array_agg(DISTINCT i.id) INTO asked FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
    EXIT WHEN asked IS NULL;

    WITH due AS MATERIALIZED (
      SELECT t.id, t.ctid AS place, t.state FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE (t.state IN ('completed', 'failed_retryable') AND t.expires_at <= at
               OR t.state = 'expired' AND t.tombstone_until <= at) AND t.id <> ALL (over)
        LIMIT most - done FOR UPDATE OF t SKIP LOCKED
    ), gone AS (
      DELETE FROM idem.slots t USING due d WHERE t.ctid = d.place AND d.state <> 'completed'
        RETURNING t.id, d.state, NULL::timestamptz AS ends
    ), kept AS (
      UPDATE idem.slots t SET state = 'expired', changed_at = t.expires_at, response_head = NULL,
             response_body = NULL, answer = NULL, response_status = NULL, body_kept = NULL
        FROM due d WHERE t.ctid = d.place AND d.state = 'completed' RETURNING t.id, d.state, t.tombstone_until AS ends
    )
    SELECT array_agg(a.id), array_agg(a.state), array_agg(a.ends) INTO handled, states, ends
      FROM (SELECT * FROM gone UNION ALL SELECT * FROM kept) a;
    IF handled IS NOT NULL THEN
      RETURN QUERY SELECT h.id, h.state, CASE h.state WHEN 'completed' THEN 'expired'::idem.state END
        FROM unnest(handled, states) h(id, state);
      done := done + cardinality(handled);
      over := over || handled;           -- Of one that is in two looks, one step.
    END IF;

    -- What is left of them, and what has expired now: to be looked at again, but not in this call.
    SELECT array_agg(t.id), array_agg(CASE t.state WHEN 'expired' THEN t.tombstone_until ELSE t.expires_at END)
      INTO more, theirs
      FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
      WHERE t.state IN ('completed', 'failed_retryable', 'expired');
    later := later || more;
    moments := moments || theirs;
  END LOOP;
  IF cardinality(later) > 0 THEN PERFORM idem.put_off_expiries(later, moments); END IF;
END $$;

-- Takes the pending request that has been due the longest under a new attempt; no row: none is due.
CREATE FUNCTION idem.claim(token uuid, owner text, lease bigint, dispatched boolean)
RETURNS TABLE (operation uuid, scope text, operation_name text, fence bigint, request bytea, recovery_point text)
LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  SELECT t.* INTO s FROM idem.standing w JOIN idem.slots t ON t.id = w.id
    WHERE w.state = 'pending' AND w.moment <= at AND t.state = 'pending' AND t.locked_until <= at AND t.expires_at > at
    ORDER BY w.moment, w.id LIMIT 1 FOR UPDATE OF t SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  s := idem.begin_attempt(s, token, owner, lease, dispatched, at);
  PERFORM idem.put(s);
  RETURN QUERY SELECT s.id, s.scope, s.operation, s.fence, s.request, s.recovery_point;
END $$;

-- ---- the days of the answers ----

-- A table for the answers that expire on `day`; false where there is one, or where some of that day lie in
-- the last table already. Waits for nobody: who has read an answer in a transaction that is still open makes it
-- fail (55P03), and it is tried again another time.
CREATE FUNCTION idem.make_day(day date) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  name text := 'answers_' || to_char(day, 'YYYYMMDD');
  first text := to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00';
  next text := to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00';
BEGIN
  PERFORM set_config('lock_timeout', '50ms', true);
  PERFORM pg_advisory_xact_lock(1229210957, 2);
  IF to_regclass('idem.' || name) IS NOT NULL OR EXISTS (
    SELECT FROM idem.answers_without_day a
    WHERE a.expires_at >= first::timestamptz AND a.expires_at < next::timestamptz) THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE idem.%I (LIKE idem.answers INCLUDING ALL)', name);
  EXECUTE format('ALTER TABLE idem.answers ATTACH PARTITION idem.%I FOR VALUES FROM (%L) TO (%L)', name, first, next);
  RETURN true;
END $$;

-- The day on which what is completed in `days` days from now will expire. `retention` in ms.
CREATE FUNCTION idem.expiry_day(retention bigint, days integer) RETURNS date LANGUAGE sql VOLATILE
RETURN ((idem.now() + idem.ms(retention)) AT TIME ZONE 'UTC')::date + days;

-- Empties and drops the tables of days that are over: every answer in them has expired, whether or not its
-- record was reaped. Of the last table, the rows that are over. Emptying locks that day's table alone; to drop
-- it, all of the answers, so that is given up where it would have to wait, and tried again another time.
CREATE FUNCTION idem.drop_old_days() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  child regclass;
  dropped integer := 0;
  today text := 'answers_' || to_char(idem.now() AT TIME ZONE 'UTC', 'YYYYMMDD');
BEGIN
  PERFORM set_config('lock_timeout', '50ms', true);
  DELETE FROM idem.answers_without_day a WHERE a.expires_at <= idem.now();
  FOR child IN
    SELECT i.inhrelid::regclass FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'idem.answers'::regclass AND c.relname ~ '^answers_[0-9]{8}$' AND c.relname < today
  LOOP
    -- Each in a block of its own: what could not be dropped stays empty.
    BEGIN
      EXECUTE format('TRUNCATE %s', child);
    EXCEPTION WHEN lock_not_available THEN
      CONTINUE;
    END;
    BEGIN
      EXECUTE format('DROP TABLE %s', child);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN
      NULL;
    END;
  END LOOP;
  RETURN dropped;
END $$;
