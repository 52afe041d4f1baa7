-- Reading without changing.

-- The records of `ids`, with their answers. A completed record without an answer: the answer is damaged.
CREATE OR REPLACE FUNCTION idem.find_many(ids uuid[])
RETURNS TABLE (record idem.slots, response_head bytea, response_body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  RETURN QUERY
    SELECT v, CASE WHEN NOT d.is_damaged THEN b.head END, CASE WHEN NOT d.is_damaged THEN b.body END
    FROM idem.slots s CROSS JOIN LATERAL idem.view_of(s, at) v
      LEFT JOIN idem.answers a ON a.expires_at = v.expires_at AND a.number = v.answer
      CROSS JOIN LATERAL (SELECT coalesce(v.response_head, a.head) AS head, coalesce(v.response_body, a.body) AS body) b
      CROSS JOIN LATERAL (SELECT v.state = 'completed' AND idem.has_damaged_answer(v, b.head, b.body) AS is_damaged) d
    WHERE s.id = ANY (ids) AND v.id IS NOT NULL;
END $$;

-- Up to `most` records in the order of their ids, behind `after`; a NULL matches any. Records that evidence can settle
-- are found without reading all: running ones by the due batches of leases, the others in idem.parked_records. OFFSET 0
-- keeps their ids the outer side of the join: by its estimates PostgreSQL would read millions of slots in order instead.
CREATE OR REPLACE FUNCTION idem.list(of_state idem.state, of_scope text, of_operation text, created_before timestamptz,
                                     after uuid, most integer)
RETURNS SETOF idem.slots LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  IF of_state IN ('pending', 'unknown', 'failed_retryable') THEN
    RETURN QUERY
      SELECT s.* FROM idem.parked_records t CROSS JOIN LATERAL (SELECT * FROM idem.slots s WHERE s.id = t.id OFFSET 0) s
      WHERE t.state = of_state AND t.id >= coalesce(after, idem.nil_uuid()) AND t.id IS DISTINCT FROM after
        AND s.state = of_state
        AND idem.is_live(s, at)
        AND (of_scope IS NULL OR s.scope = of_scope COLLATE "C")
        AND (of_operation IS NULL OR s.operation = of_operation COLLATE "C")
        AND (created_before IS NULL OR s.created_at < created_before)
      ORDER BY t.id LIMIT most;
    RETURN;
  END IF;
  IF of_state = 'in_progress' THEN
    RETURN QUERY
      SELECT s.* FROM (
        SELECT t.id FROM idem.parked_records t
          WHERE t.state = of_state AND t.id >= coalesce(after, idem.nil_uuid()) AND t.id IS DISTINCT FROM after
        UNION
        SELECT i.id FROM idem.lease_due_batches l CROSS JOIN LATERAL unnest(l.ids) i(id)
          WHERE i.id >= coalesce(after, idem.nil_uuid()) AND i.id IS DISTINCT FROM after
      ) known CROSS JOIN LATERAL (SELECT * FROM idem.slots s WHERE s.id = known.id OFFSET 0) s
      WHERE s.state = of_state AND (of_scope IS NULL OR s.scope = of_scope COLLATE "C")
        AND (of_operation IS NULL OR s.operation = of_operation COLLATE "C")
        AND (created_before IS NULL OR s.created_at < created_before)
      ORDER BY known.id LIMIT most;
    RETURN;
  END IF;
  RETURN QUERY
    SELECT v.* FROM idem.slots s CROSS JOIN LATERAL idem.view_of(s, at) v
    WHERE v.id IS NOT NULL AND s.id >= coalesce(after, idem.nil_uuid()) AND s.id IS DISTINCT FROM after
      AND (of_state IS NULL OR v.state = of_state) AND (of_scope IS NULL OR v.scope = of_scope COLLATE "C")
      AND (of_operation IS NULL OR v.operation = of_operation COLLATE "C")
      AND (created_before IS NULL OR v.created_at < created_before)
    ORDER BY s.id LIMIT most;
END $$;

-- The members of awaited records whose change wakes a waiter.
CREATE OR REPLACE FUNCTION idem.waited_states(ids uuid[])
RETURNS TABLE (operation uuid, state idem.state, fence bigint, locked_until timestamptz) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT s.id, s.state, s.fence, s.locked_until FROM idem.slots s WHERE s.id = ANY (ids);
END;

-- How many records each state has. Of a large table, pending and unknown records are counted and the others estimated:
-- from a thousand pages, and running ones from the due batches of leases.
CREATE OR REPLACE FUNCTION idem.census()
RETURNS TABLE (state idem.state, records bigint, oldest_unknown timestamptz, at timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  pages bigint := pg_relation_size('idem.slots') / current_setting('block_size')::bigint;
  sampled real := least(100, 100 * 1000 / greatest(pages, 1)::real);
  counted bigint[] := array_fill(0::bigint, ARRAY[6]);
BEGIN
  at := idem.now();
  IF pages <= 2000 THEN
    SELECT array_agg(coalesce(n.records, 0) ORDER BY e.state) INTO counted
      FROM unnest(enum_range(NULL::idem.state)) e(state)
        LEFT JOIN (SELECT s.state, count(*) AS records FROM idem.slots s GROUP BY s.state) n ON n.state = e.state;
  ELSE
    SELECT array_agg(coalesce(n.records, 0) ORDER BY e.state) INTO counted
      FROM unnest(enum_range(NULL::idem.state)) e(state)
        LEFT JOIN (SELECT s.state, (count(*) * 100 / sampled)::bigint AS records
                     FROM idem.slots s TABLESAMPLE SYSTEM (sampled) GROUP BY s.state) n ON n.state = e.state;
    -- The newest batches of the next 15 minutes hold nearly all running records; later ones are of pending requests.
    counted[2] := (SELECT count(DISTINCT s.id)
      FROM (SELECT l.ids FROM idem.lease_due_batches l WHERE l.due_at < at + interval '15 minutes'
              ORDER BY l.due_at DESC LIMIT 1000) newest
        CROSS JOIN LATERAL unnest(newest.ids) i(id) JOIN idem.slots s ON s.id = i.id
      WHERE s.state = 'in_progress');
    counted[1] := (SELECT count(*) FROM idem.parked_records t WHERE t.state = 'pending');
    counted[5] := (SELECT count(*) FROM idem.parked_records t WHERE t.state = 'unknown');
  END IF;
  FOREACH state IN ARRAY enum_range(NULL::idem.state) LOOP
    records := counted[array_position(enum_range(NULL::idem.state), state)];
    oldest_unknown := CASE state WHEN 'unknown'
      THEN (SELECT min(t.moment) FROM idem.parked_records t WHERE t.state = 'unknown') END;
    RETURN NEXT;
  END LOOP;
END $$;

-- The operations of all live records: a change of route names must not hide them.
CREATE OR REPLACE FUNCTION idem.live_operations() RETURNS SETOF text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  RETURN QUERY SELECT DISTINCT s.operation FROM idem.slots s
    WHERE CASE WHEN s.state = 'failed_retryable' THEN at < s.expires_at
               WHEN s.state IN ('completed', 'expired') THEN at < s.tombstone_until ELSE true END;
END $$;
