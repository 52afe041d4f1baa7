-- Drops up to `most` answers, failed records and tombstones that are due, the longest due first; never what is in progress or
-- unknown. A large answer's bytes go with the table of their day (idem.drop_old_days()).
CREATE OR REPLACE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  asked uuid[];
  handled uuid[];
  states idem.state[];
  dues timestamptz[];
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
  WHILE done < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.expiry_due_batches l WHERE l.due_at <= at
        ORDER BY l.due_at LIMIT 16 FOR UPDATE SKIP LOCKED
    ), enough AS (
      SELECT b.place FROM (
        SELECT n.place, sum(n.size) OVER (ORDER BY n.due_at, n.place) - n.size AS before FROM next n
      ) b WHERE b.before < most - done
    ), taken AS (
      DELETE FROM idem.expiry_due_batches l USING enough n WHERE l.ctid = n.place RETURNING l.ids
    )
    SELECT array_agg(DISTINCT i.id) INTO asked FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
    EXIT WHEN asked IS NULL;

    WITH due AS MATERIALIZED (
      SELECT t.id, t.ctid AS place, t.state, t.charged,
             CASE t.state WHEN 'expired' THEN t.tombstone_until ELSE t.expires_at END AS due_at
        FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE (t.state IN ('completed', 'failed_retryable') AND t.expires_at <= at
               OR t.state = 'expired' AND t.tombstone_until <= at) AND t.id <> ALL (over)
        ORDER BY due_at LIMIT most - done FOR UPDATE OF t SKIP LOCKED
    ), gone AS (
      DELETE FROM idem.slots t USING due d WHERE t.ctid = d.place AND d.state <> 'completed'
        RETURNING t.id, d.state, d.due_at, NULL::timestamptz AS ends, t.scope,
                  CASE WHEN d.charged > 0 AND d.state <> 'expired' THEN 1 ELSE 0 END AS fewer, d.charged AS less
    ), kept AS (
      UPDATE idem.slots t SET state = 'expired', changed_at = t.expires_at, response_head = NULL,
             response_body = NULL, answer = NULL, response_status = NULL, body_kept = NULL, checksum = NULL,
             charged = CASE WHEN d.charged > 0 THEN 256 ELSE 0 END  -- idem.tombstone_charge()
        FROM due d WHERE t.ctid = d.place AND d.state = 'completed'
        RETURNING t.id, d.state, d.due_at, t.tombstone_until AS ends, t.scope, CASE WHEN d.charged > 0 THEN 1 ELSE 0 END AS fewer,
                  d.charged - t.charged AS less
    ), unstood AS (
      DELETE FROM idem.parked_records t USING due d WHERE t.id = d.id
    )
    SELECT array_agg(a.id), array_agg(a.state), array_agg(a.due_at), array_agg(a.id) FILTER (WHERE a.ends IS NOT NULL),
           array_agg(a.ends) FILTER (WHERE a.ends IS NOT NULL), array_agg(a.scope) FILTER (WHERE a.less > 0),
           array_agg(a.fewer) FILTER (WHERE a.less > 0), array_agg(a.less) FILTER (WHERE a.less > 0)
      INTO handled, states, dues, more, theirs, whose, fewer, less
      FROM (SELECT * FROM gone UNION ALL SELECT * FROM kept) a;
    IF whose IS NOT NULL THEN
      PERFORM idem.note_usage(n.scope, -sum(n.fewer)::bigint, -sum(n.less)::bigint)
        FROM unnest(whose, fewer, less) n(scope, fewer, less) GROUP BY n.scope;
    END IF;
    IF handled IS NOT NULL THEN
      RETURN QUERY SELECT h.id, h.state, CASE h.state WHEN 'completed' THEN 'expired'::idem.state END,
                          idem.ms_until(at, h.due_at)
        FROM unnest(handled, states, dues) h(id, state, due_at);
      done := done + cardinality(handled);
      over := over || handled;           -- Of one that is in two looks, one step.
    END IF;

    -- What is left of them, and what has expired now: to be looked at again, but not in this call.
    IF handled IS NULL OR cardinality(handled) < cardinality(asked) THEN
      SELECT array_agg(t.id), array_agg(CASE t.state WHEN 'expired' THEN t.tombstone_until ELSE t.expires_at END)
        INTO more, theirs
        FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE t.state IN ('completed', 'failed_retryable', 'expired');
    END IF;
    later := later || more;
    moments := moments || theirs;
  END LOOP;
  IF cardinality(later) > 0 THEN PERFORM idem.put_off_expiries(later, moments); END IF;
END $$;
