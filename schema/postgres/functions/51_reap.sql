-- Answers, failed records and tombstones past their time.

-- Takes due batches of expiries off their table, the longest due first: the ids of at least `most` records, if so many
-- are due, and of one batch more at most. NULL: none is due.
CREATE OR REPLACE FUNCTION idem.take_due_expiries(at timestamptz, most integer) RETURNS uuid[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  due uuid[];
BEGIN
  WITH next AS MATERIALIZED (
    SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.expiry_due_batches l WHERE l.due_at <= at
      ORDER BY l.due_at LIMIT 16 FOR UPDATE SKIP LOCKED
  ), enough AS (
    SELECT b.place FROM (
      SELECT n.place, sum(n.size) OVER (ORDER BY n.due_at, n.place) - n.size AS before FROM next n
    ) b WHERE b.before < most
  ), taken AS (
    DELETE FROM idem.expiry_due_batches l USING enough n WHERE l.ctid = n.place RETURNING l.ids
  )
  SELECT array_agg(DISTINCT i.id) INTO due FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
  RETURN due;
END $$;

-- A record that contradicts itself stays, because its key would run again.
-- Of `checked`, but not of `but`: completed records become tombstones, failed ones and tombstones go. In arrays: all
-- that changed, with the state before and the moment at which it was due; the new tombstones, with their ends.
CREATE OR REPLACE FUNCTION idem.reap_records(
  checked uuid[], but uuid[], most integer, at timestamptz, OUT ids uuid[], OUT states idem.state[],
  OUT dues timestamptz[], OUT tombstones uuid[], OUT tombstone_ends timestamptz[]
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  scopes text[];
  actives bigint[];
  sizes bigint[];
BEGIN
  WITH due AS MATERIALIZED (
    SELECT t.id, t.ctid AS place, t.state, t.charged,
           CASE t.state WHEN 'expired' THEN t.tombstone_until ELSE t.expires_at END AS due_at
      FROM unnest(checked) i(id) JOIN idem.slots t ON t.id = i.id
      WHERE (t.state IN ('completed', 'failed_retryable') AND t.expires_at <= at
             OR t.state = 'expired' AND t.tombstone_until <= at) AND t.id <> ALL (but)
        AND NOT idem.contradicts_itself(t)
      ORDER BY due_at LIMIT most FOR UPDATE OF t SKIP LOCKED
  ), gone AS (
    DELETE FROM idem.slots t USING due d WHERE t.ctid = d.place AND d.state <> 'completed'
      RETURNING t.id, d.state, d.due_at, NULL::timestamptz AS ends, t.scope,
                CASE WHEN d.charged > 0 AND d.state <> 'expired' THEN 1 ELSE 0 END AS active, d.charged AS size
  ), kept AS (
    UPDATE idem.slots t SET state = 'expired', changed_at = t.expires_at, response_head = NULL,
           response_body = NULL, answer = NULL, response_status = NULL, body_kept = NULL, checksum = NULL,
           charged = CASE WHEN d.charged > 0 THEN 256 ELSE 0 END  -- idem.tombstone_charge()
      FROM due d WHERE t.ctid = d.place AND d.state = 'completed'
      RETURNING t.id, d.state, d.due_at, t.tombstone_until AS ends, t.scope,
                CASE WHEN d.charged > 0 THEN 1 ELSE 0 END AS active, d.charged - t.charged AS size
  ), unparked AS (
    DELETE FROM idem.parked_records t USING due d WHERE t.id = d.id
  )
  SELECT array_agg(a.id), array_agg(a.state), array_agg(a.due_at), array_agg(a.id) FILTER (WHERE a.ends IS NOT NULL),
         array_agg(a.ends) FILTER (WHERE a.ends IS NOT NULL), array_agg(a.scope) FILTER (WHERE a.size > 0),
         array_agg(a.active) FILTER (WHERE a.size > 0), array_agg(a.size) FILTER (WHERE a.size > 0)
    INTO ids, states, dues, tombstones, tombstone_ends, scopes, actives, sizes
    FROM (SELECT * FROM gone UNION ALL SELECT * FROM kept) a;
  IF scopes IS NOT NULL THEN
    PERFORM idem.add_usage(n.scope, -sum(n.active)::bigint, -sum(n.size)::bigint)
      FROM unnest(scopes, actives, sizes) n(scope, active, size) GROUP BY n.scope;
  END IF;
END $$;

-- Drops up to `most` answers, failed records and tombstones that are due, the longest due first; never records that are
-- in progress or unknown. A large answer's bytes go with the table of their day (idem.drop_old_days()).
CREATE OR REPLACE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  checked uuid[];
  reaped record;
  over uuid[] := '{}';
  more uuid[];
  more_moments timestamptz[];
  later uuid[] := '{}';
  moments timestamptz[] := '{}';
  done integer := 0;
  began timestamptz := clock_timestamp();
BEGIN
  WHILE done < most AND clock_timestamp() < began + interval '250 ms' LOOP
    checked := idem.take_due_expiries(at, most - done);
    EXIT WHEN checked IS NULL;
    reaped := idem.reap_records(checked, over, most - done, at);
    more := reaped.tombstones;
    more_moments := reaped.tombstone_ends;
    IF reaped.ids IS NOT NULL THEN
      RETURN QUERY SELECT h.id, h.state, CASE h.state WHEN 'completed' THEN 'expired'::idem.state END,
                          idem.ms_until(at, h.due_at)
        FROM unnest(reaped.ids, reaped.states, reaped.dues) h(id, state, due_at);
      done := done + cardinality(reaped.ids);
      over := over || reaped.ids;        -- A record that is in two batches is reaped once.
    END IF;

    -- The records that are left, and the new tombstones, are checked again, but not in this call.
    IF reaped.ids IS NULL OR cardinality(reaped.ids) < cardinality(checked) THEN
      SELECT array_agg(t.id),
             array_agg(CASE WHEN idem.contradicts_itself(t) THEN at + interval '1 hour'
                            WHEN t.state = 'expired' THEN t.tombstone_until ELSE t.expires_at END)
        INTO more, more_moments
        FROM unnest(checked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE t.state IN ('completed', 'failed_retryable', 'expired');
    END IF;
    later := later || more;
    moments := moments || more_moments;
  END LOOP;
  IF cardinality(later) > 0 THEN PERFORM idem.reschedule_expiry_checks(later, moments); END IF;
END $$;
