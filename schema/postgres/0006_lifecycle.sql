-- What time does to records (§3, §19), and what the dispatcher takes. Rows that somebody holds are left
-- for the next round.

CREATE TYPE idem.lifecycle_step AS (operation uuid, before idem.state, after idem.state);

-- Ends up to `most` expired leases and pending requests past their expiry.
CREATE FUNCTION idem.sweep(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql AS $$
DECLARE
  before idem.slots;
  s idem.slots;
  at timestamptz := idem.now();
  step idem.lifecycle_step;
BEGIN
  PERFORM idem.be_durable();
  FOR before IN
    SELECT * FROM idem.slots t WHERE t.state IN ('pending', 'in_progress') AND t.due_at <= at
      ORDER BY t.due_at LIMIT most FOR UPDATE SKIP LOCKED
  LOOP
    s := idem.swept(before, at);
    CONTINUE WHEN s IS NOT DISTINCT FROM before;
    PERFORM idem.note_ended_lease(before, s.state, 'sweeper', at);
    PERFORM idem.put(s);
    step := ROW(s.id, before.state, s.state);
    RETURN NEXT step;
  END LOOP;
END $$;

-- Drops up to `most` answers, failed records and tombstones that are due; never what is in progress or
-- unknown. An answer's bytes go with the table of their day (idem.drop_old_days()).
CREATE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
    WITH due AS MATERIALIZED (
      SELECT t.id, t.state FROM idem.slots t
        WHERE t.state IN ('completed', 'failed_retryable', 'expired') AND t.due_at <= at
        ORDER BY t.due_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
      DELETE FROM idem.slots t USING due d WHERE t.id = d.id AND d.state <> 'completed'
        RETURNING t.id, d.state
    ), kept AS (
      UPDATE idem.slots t SET state = 'expired', changed_at = t.expires_at, answer = NULL, response_status = NULL,
                                body_kept = NULL
        FROM due d WHERE t.id = d.id AND d.state = 'completed' RETURNING t.id
    )
    SELECT g.id, g.state, NULL::idem.state FROM gone g
    UNION ALL SELECT k.id, 'completed', 'expired' FROM kept k;
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
  SELECT * INTO s FROM idem.slots t WHERE t.state = 'pending' AND t.locked_until <= at AND t.expires_at > at
    ORDER BY t.locked_until, t.id LIMIT 1 FOR UPDATE SKIP LOCKED;
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
    BEGIN
      EXECUTE format('TRUNCATE %s', child);
      EXECUTE format('DROP TABLE %s', child);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN
      NULL;
    END;
  END LOOP;
  RETURN dropped;
END $$;
