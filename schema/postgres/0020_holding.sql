-- Lifecycle and evidence cost requests less: what a call of sweep or reap does beside its records' own changes is planned
-- once in a session, where a function in plain SQL is planned with each call; and a list reads what stands and runs, its
-- pages on from where the one before ended. Word that an attempt was done counts also where it does not say which attempt
-- it means, and holds a record that would run again; word that it was refused holds none, and does not complete one that
-- is held.

CREATE INDEX standing_by_id ON idem.standing (state, id);

CREATE OR REPLACE FUNCTION idem.list(of_state idem.state, of_scope text, of_operation text, created_before timestamptz,
                                     after uuid, most integer)
RETURNS SETOF idem.slots LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  -- An operator's queue is not all records, nor is what an event may be about.
  IF of_state IN ('pending', 'unknown', 'failed_retryable') THEN
    RETURN QUERY
      SELECT s.* FROM idem.standing t JOIN idem.slots s ON s.id = t.id
      WHERE t.state = of_state AND t.id > coalesce(after, idem.nobody()) AND s.state = of_state AND idem.is_live(s, at)
        AND (of_scope IS NULL OR s.scope = of_scope) AND (of_operation IS NULL OR s.operation = of_operation)
        AND (created_before IS NULL OR s.created_at < created_before)
      ORDER BY t.id LIMIT most;
    RETURN;
  END IF;
  IF of_state = 'in_progress' THEN
    RETURN QUERY
      SELECT s.* FROM (
        SELECT t.id FROM idem.standing t WHERE t.state = of_state AND t.id > coalesce(after, idem.nobody())
        UNION
        SELECT i.id FROM idem.lease_looks l CROSS JOIN LATERAL unnest(l.ids) i(id)
          WHERE i.id > coalesce(after, idem.nobody())
      ) known JOIN idem.slots s ON s.id = known.id
      WHERE s.state = of_state AND (of_scope IS NULL OR s.scope = of_scope)
        AND (of_operation IS NULL OR s.operation = of_operation)
        AND (created_before IS NULL OR s.created_at < created_before)
      ORDER BY s.id LIMIT most;
    RETURN;
  END IF;
  RETURN QUERY
    SELECT v.* FROM idem.slots s CROSS JOIN LATERAL idem.view_of(s, at) v
    WHERE v.id IS NOT NULL AND (after IS NULL OR s.id > after)
      AND (of_state IS NULL OR v.state = of_state) AND (of_scope IS NULL OR v.scope = of_scope)
      AND (of_operation IS NULL OR v.operation = of_operation)
      AND (created_before IS NULL OR v.created_at < created_before)
    ORDER BY s.id LIMIT most;
END $$;

CREATE OR REPLACE FUNCTION idem.note_ended_lease(before idem.slots, after idem.state, decided_by text, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.evidence
    (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, recorded_at)
  VALUES (before.id, before.fence, decided_by,
          CASE before.state WHEN 'in_progress' THEN 'lease_expired' ELSE 'retention_over' END, '',
          before.state, after, true, at, at);
END $$;

CREATE OR REPLACE FUNCTION idem.append_evidence(id uuid, fence bigint, source text, evidence text, reason text,
  before_state idem.state, after_state idem.state, applied boolean, observed_at timestamptz, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.evidence
    (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, recorded_at)
  VALUES (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, at);
END $$;

CREATE OR REPLACE FUNCTION idem.put_off_leases(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.lease_looks
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 64 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part;
END $$;

-- Into looks as small as what is taken of them at a time: of a look of 64 a slice of 16 had to read all, and to write
-- three quarters anew.
CREATE OR REPLACE FUNCTION idem.put_off_expiries(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(ids) <= 16 THEN
    INSERT INTO idem.expiry_looks VALUES ((SELECT min(m) FROM unnest(moments) m), ids);
    RETURN;
  END IF;
  INSERT INTO idem.expiry_looks
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 16 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part;
END $$;

-- Where looks are of a record or two it takes more of them at a time, and what only a reserve takes up begins to stand.
-- Whether its commit is waited for is the session's to say, as a sweep that is forgotten is done again; but an answer that
-- it gives is on the disk before it is told.
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
  WHILE ended < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.lease_looks l WHERE l.due_at <= at
        ORDER BY l.due_at LIMIT 256 FOR UPDATE SKIP LOCKED
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
        -- Only a reserve takes up what may be resumed or run again; it stands until then.
        IF before.state = 'in_progress' AND before.dispatched AND before.lease_policy <> 'unknown' THEN
          -- Locked first, as whoever changes it does. One that is locked, or renewed, is looked at again.
          PERFORM 1 FROM idem.slots h
            WHERE h.id = before.id AND h.state = 'in_progress' AND h.locked_until <= at FOR UPDATE SKIP LOCKED;
          IF FOUND THEN
            INSERT INTO idem.standing VALUES (before.id, 'in_progress', due)
              ON CONFLICT (id) DO UPDATE SET state = excluded.state, moment = excluded.moment;
          ELSE
            later := later || before.id;
            moments := moments || due;
          END IF;
          CONTINUE;
        END IF;
        IF ended >= most THEN
          later := later || before.id;
          moments := moments || due;
          CONTINUE;
        END IF;
        SELECT * INTO held FROM idem.slots t WHERE t.id = before.id FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
          s := idem.swept(held, at);
          IF s IS DISTINCT FROM held THEN
            -- An answer may be told to whoever asks, who writes nothing behind it.
            IF s.state = 'completed' THEN PERFORM idem.be_durable(); END IF;
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

-- In fewer steps than before, and of smaller looks; what is gone stands no more.
CREATE OR REPLACE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  asked uuid[];
  handled uuid[];
  states idem.state[];
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
      SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.expiry_looks l WHERE l.due_at <= at
        ORDER BY l.due_at LIMIT 16 FOR UPDATE SKIP LOCKED
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
    ), unstood AS (
      DELETE FROM idem.standing t USING due d WHERE t.id = d.id
    )
    SELECT array_agg(a.id), array_agg(a.state), array_agg(a.id) FILTER (WHERE a.ends IS NOT NULL),
           array_agg(a.ends) FILTER (WHERE a.ends IS NOT NULL), array_agg(a.scope) FILTER (WHERE a.less > 0),
           array_agg(a.fewer) FILTER (WHERE a.less > 0), array_agg(a.less) FILTER (WHERE a.less > 0)
      INTO handled, states, more, theirs, whose, fewer, less
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

-- As before, but for what holds a record; `denies`: the answer says that the work was refused.
DROP FUNCTION IF EXISTS idem.resolve(uuid, idem.state, bigint, bytea, bytea, text, text, text, timestamptz, bigint);
CREATE OR REPLACE FUNCTION idem.resolve(id uuid, outcome idem.state, fence bigint, head bytea, body bytea, source text,
  evidence text, reason text, observed_at timestamptz, grace bigint, denies boolean DEFAULT false)
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
  is_positive boolean := outcome = 'completed';
BEGIN
  IF outcome NOT IN ('completed', 'failed_retryable') THEN
    RAISE EXCEPTION 'nothing is resolved as %', outcome USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.be_durable();
  PERFORM idem.wait_a_while();
  SELECT * INTO s FROM idem.slots t WHERE t.id = resolve.id FOR UPDATE;
  at := idem.now();
  verdict := 'not_found';
  IF idem.is_live(s, at) THEN
    before := idem.state_at(s, at);
    verdict := CASE
      WHEN s.state IN ('in_progress', 'completed', 'expired') OR s.state <> 'unknown' AND NOT is_positive
        THEN 'wrong_state'
      -- A pending record that nobody ever ran has no attempt that evidence could speak of.
      WHEN resolve.fence = 0 OR resolve.fence <> s.fence THEN 'wrong_fence'
      WHEN is_positive AND head IS NULL THEN 'missing_response'
      WHEN NOT is_positive AND NOT (resolve.observed_at > s.locked_until + idem.ms(grace) AND resolve.observed_at <= at)
        THEN 'too_early'
      WHEN s.contested AND (NOT is_positive OR denies) THEN 'by_evidence'
      ELSE 'done'
    END;
    IF verdict = 'done' THEN
      IF is_positive THEN
        s := idem.finish(s, head, body, at);
      ELSE
        s := idem.release_attempt(s, 'proven', 'resolved', 0, at);
      END IF;
      PERFORM idem.put(s);
    -- That it was refused holds nothing: nothing came of it that could come of it twice.
    ELSIF is_positive AND NOT denies AND s.fence <> 0 AND resolve.fence IN (0, s.fence) AND NOT s.contested
          AND (verdict IN ('missing_response', 'wrong_fence') OR verdict = 'wrong_state'
               AND (s.state = 'in_progress' OR before = 'completed' AND s.response_status >= 500)) THEN
      s.contested := true;
      IF s.state IN ('failed_retryable', 'pending') THEN
        -- One that would run again is not known to be undone any more.
        IF s.request IS NULL THEN s.expires_at := NULL; END IF;
        s := idem.turn_unknown(s, 'contested', at);
        s.reconcile_after := at;
        PERFORM idem.put(s);
      ELSE
        UPDATE idem.slots t SET contested = true WHERE t.id = s.id;  -- Where it stands, or is looked at, it stays.
      END IF;
    END IF;
    state := idem.state_at(s, at);
  END IF;
  PERFORM idem.append_evidence(resolve.id, resolve.fence, source, evidence, reason, before, state,
                               verdict = 'done', resolve.observed_at, at);
  RETURN NEXT;
END $$;
