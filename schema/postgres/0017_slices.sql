-- Sweeper and reaper take small slices while requests are served (src/workers/pace.hpp). Before, a call took so many
-- looks at a time, each of up to 256 records, and put off nearly all of them again: one of 64 cost what one of 256
-- did. Now they are taken until their records are enough, and what is put off goes into looks of a slice's size.

-- Puts records off again, those that go together into one row. `moments`: when each may be due.
CREATE OR REPLACE FUNCTION idem.put_off_leases(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO idem.lease_looks
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 64 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part
$$;
CREATE OR REPLACE FUNCTION idem.put_off_expiries(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO idem.expiry_looks
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 64 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part
$$;

-- As before. Of the records whose leases were looked at most have ended long ago, so a call goes through a few
-- hundred at least.
CREATE OR REPLACE FUNCTION idem.sweep(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
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
      SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.lease_looks l WHERE l.due_at <= at
        ORDER BY l.due_at LIMIT 32 FOR UPDATE SKIP LOCKED
    ), enough AS (
      SELECT b.place FROM (
        SELECT n.place, sum(n.size) OVER (ORDER BY n.due_at, n.place) - n.size AS before FROM next n
      ) b WHERE b.before < greatest(most - ended, 256)
    ), taken AS (
      DELETE FROM idem.lease_looks l USING enough n WHERE l.ctid = n.place RETURNING l.ids
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

-- As before.
CREATE OR REPLACE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
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
  whose text[];
  fewer bigint[];
  less bigint[];
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM idem.be_durable();
  WHILE done < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.expiry_looks l WHERE l.due_at <= at
        ORDER BY l.due_at LIMIT 8 FOR UPDATE SKIP LOCKED
    ), enough AS (
      SELECT b.place FROM (
        SELECT n.place, sum(n.size) OVER (ORDER BY n.due_at, n.place) - n.size AS before FROM next n
      ) b WHERE b.before < most - done
    ), taken AS (
      DELETE FROM idem.expiry_looks l USING enough n WHERE l.ctid = n.place RETURNING l.ids
    )
    SELECT array_agg(DISTINCT i.id) INTO asked FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
    EXIT WHEN asked IS NULL;

    WITH due AS MATERIALIZED (
      SELECT t.id, t.ctid AS place, t.state, t.charged FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE (t.state IN ('completed', 'failed_retryable') AND t.expires_at <= at
               OR t.state = 'expired' AND t.tombstone_until <= at) AND t.id <> ALL (over)
        LIMIT most - done FOR UPDATE OF t SKIP LOCKED
    ), gone AS (
      DELETE FROM idem.slots t USING due d WHERE t.ctid = d.place AND d.state <> 'completed'
        RETURNING t.id, d.state, NULL::timestamptz AS ends, t.scope,
                  CASE WHEN d.charged > 0 AND d.state <> 'expired' THEN 1 ELSE 0 END AS fewer, d.charged AS less
    ), kept AS (
      UPDATE idem.slots t SET state = 'expired', changed_at = t.expires_at, response_head = NULL,
             response_body = NULL, answer = NULL, response_status = NULL, body_kept = NULL,
             charged = CASE WHEN d.charged > 0 THEN 256 ELSE 0 END  -- idem.tombstone_charge()
        FROM due d WHERE t.ctid = d.place AND d.state = 'completed'
        RETURNING t.id, d.state, t.tombstone_until AS ends, t.scope, CASE WHEN d.charged > 0 THEN 1 ELSE 0 END AS fewer,
                  d.charged - t.charged AS less
    )
    SELECT array_agg(a.id), array_agg(a.state), array_agg(a.ends), array_agg(a.scope) FILTER (WHERE a.less > 0),
           array_agg(a.fewer) FILTER (WHERE a.less > 0), array_agg(a.less) FILTER (WHERE a.less > 0)
      INTO handled, states, ends, whose, fewer, less
      FROM (SELECT * FROM gone UNION ALL SELECT * FROM kept) a;
    IF whose IS NOT NULL THEN
      PERFORM idem.note_usage(n.scope, -sum(n.fewer)::bigint, -sum(n.less)::bigint)
        FROM unnest(whose, fewer, less) n(scope, fewer, less) GROUP BY n.scope;
    END IF;
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
