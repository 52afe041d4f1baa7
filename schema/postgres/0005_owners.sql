-- What owners do to their attempts (§3, §4), for one record and, as the gateway asks them, for many.

-- One owner's verb on a record that may be held by another transaction: `patient` as in idem.reserve_one();
-- none: it is held.
CREATE FUNCTION idem.owner_one(
  verb text, id uuid, fence bigint, token uuid, lease bigint, recovery_point text, head bytea, body bytea,
  reference text, basis idem.release_basis, error_code text, retry_in bigint, reconcile_in bigint, patient boolean
) RETURNS idem.owner_reply LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz;
BEGIN
  IF patient THEN
    BEGIN
      SELECT * INTO s FROM idem.slots t WHERE t.id = owner_one.id FOR UPDATE;
    EXCEPTION WHEN lock_not_available THEN
      RETURN NULL;
    END;
  ELSE
    SELECT * INTO s FROM idem.slots t WHERE t.id = owner_one.id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM idem.slots t WHERE t.id = owner_one.id) THEN RETURN NULL; END IF;
  END IF;
  at := idem.now();
  RETURN idem.owner_step(verb, s, fence, token, at, lease, recovery_point, head, body, reference, basis,
                         error_code, retry_in, reconcile_in);
END $$;

-- The first row of an answer tells all calls that took the usual way, in two arrays; each other row one call.
CREATE TYPE idem.numbered_reply AS (
  usual integer[],                       -- numbers of calls in the batch, from 1: completed, done
  until timestamptz[],                   -- when what they stored expires
  number integer,
  held boolean,                          -- another transaction has the record: ask again, apart from the others
  state idem.state,
  verdict idem.verdict,
  expires_at timestamptz
);

-- Both functions below know their calls by number: to take apart a dozen arrays side by side costs more than to
-- look an update's values up in them.

-- Up to 256 owners' verbs, each of another record; what only other verbs than complete mean may be empty where
-- there are none. Completions of running attempts, which is nearly all there is,
-- are one statement; rows that somebody holds are left alone.
CREATE FUNCTION idem.owners_many(
  verbs text[], ids uuid[], fences bigint[], tokens uuid[], leases bigint[], recovery_points text[],
  heads bytea[], bodies bytea[], refs text[], bases text[], error_codes text[],
  retry_ins bigint[], reconcile_ins bigint[]
) RETURNS SETOF idem.numbered_reply LANGUAGE plpgsql
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  due_at timestamptz;
  larger integer;
  reply idem.owner_reply;
  row idem.numbered_reply;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  WITH held AS MATERIALIZED (
    -- Nobody is waited for here, so the order in which rows are locked does not matter.
    SELECT s.ctid AS place, a.number, idem.is_small(heads[a.number], bodies[a.number]) IS TRUE AS is_small
      FROM generate_series(1, cardinality(ids)) a(number) JOIN idem.slots s ON s.id = ids[a.number]
      WHERE verbs[a.number] = 'complete' AND s.state = 'in_progress' AND s.token = tokens[a.number]
        AND fences[a.number] IN (0, s.fence)
      FOR UPDATE OF s SKIP LOCKED
  ), settled AS (
    UPDATE idem.slots s SET
      state = 'completed', request = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
      reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
      expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
      response_head = CASE WHEN h.is_small THEN heads[h.number] END,
      response_body = CASE WHEN h.is_small THEN bodies[h.number] END,
      answer = CASE WHEN NOT h.is_small THEN nextval('idem.answer_numbers') END,
      response_status = idem.status_of(heads[h.number]), body_kept = idem.has_body(heads[h.number]),
      upstream_reference = CASE refs[h.number] WHEN '' THEN s.upstream_reference ELSE refs[h.number] END
    FROM held h WHERE s.ctid = h.place
    RETURNING h.number, s.expires_at, s.answer
  )
  SELECT array_agg(d.number), array_agg(d.expires_at), min(d.expires_at), count(d.answer)
    INTO row.usual, row.until, due_at, larger FROM settled d;
  IF larger > 0 THEN
    INSERT INTO idem.answers
      SELECT s.expires_at, s.answer, heads[d.number], bodies[d.number]
        FROM unnest(row.usual) d(number) JOIN idem.slots s ON s.id = ids[d.number] WHERE s.answer IS NOT NULL;
  END IF;
  RETURN NEXT row;
  IF cardinality(row.usual) = cardinality(ids) THEN
    INSERT INTO idem.expiry_looks VALUES (due_at, ids);
    RETURN;
  END IF;
  IF row.usual IS NOT NULL THEN
    INSERT INTO idem.expiry_looks
      VALUES (due_at, (SELECT array_agg(ids[d.number]) FROM unnest(row.usual) d(number)));
  END IF;

  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN n = ANY (row.usual);
    reply := idem.owner_one(verbs[n], ids[n], fences[n], tokens[n], leases[n], recovery_points[n], heads[n],
                            bodies[n], refs[n], bases[n]::idem.release_basis, error_codes[n], retry_ins[n],
                            reconcile_ins[n], false);
    RETURN NEXT ROW(NULL, NULL, n, reply IS NULL, reply.state, reply.verdict, reply.expires_at)::idem.numbered_reply;
  END LOOP;
END $$;

-- Up to 256 reserves, of which the first `different` are each of another key. New keys, which is nearly all there
-- is, are one statement. The first row of the answer has their fences, 0 for the others; each other row one call.
CREATE FUNCTION idem.reserve_many(
  asked_generation bigint, different integer, ids uuid[], scopes text[], operations text[], offered bytea[],
  tokens uuid[], owners text[], leases bigint[], policies text[], dispatches boolean[], retentions bigint[],
  tombstones bigint[]
) RETURNS TABLE (granted bigint[], number integer, answered idem.outcome) LANGUAGE plpgsql
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
  at timestamptz;
  current bigint;
  shortest bigint;
  locked boolean[];
  made uuid[];
  fences bigint[];
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.see_what_is_committed(); END IF;
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  -- An INSERT would wait for who holds what lies there already, or makes it. Who makes a record holds its lock
  -- until that is committed or given up. So with the lock, the next statement sees what there is, and nobody can
  -- come between: it meets no conflict.
  SELECT array_agg(pg_try_advisory_xact_lock(idem.lock_of(ids[a.number]))), min(leases[a.number]),
         (SELECT i.generation FROM idem.identity i)
    INTO locked, shortest, current FROM generate_series(1, different) a(number);
  IF current IS DISTINCT FROM asked_generation THEN PERFORM idem.in_generation(asked_generation); END IF;
  at := idem.now();
  WITH inserted AS (
    INSERT INTO idem.slots
      (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
       lease_policy, retention, tombstone, created_at, changed_at)
    SELECT ids[a.number], scopes[a.number], operations[a.number], asked_generation, substr(offered[a.number], 1, 36),
           'in_progress', nextval('idem.fences'), tokens[a.number], owners[a.number], at + idem.ms(leases[a.number]),
           dispatches[a.number],
           CASE policies[a.number] WHEN 'unknown' THEN 'unknown' ELSE policies[a.number]::idem.lease_policy END,
           retentions[a.number], tombstones[a.number],
           at, at
    FROM generate_series(1, different) a(number)
    WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number])
    RETURNING id, fence
  )
  SELECT array_agg(i.id), array_agg(i.fence) INTO made, fences FROM inserted i;
  IF made IS NOT NULL THEN INSERT INTO idem.lease_looks VALUES (at + idem.ms(shortest), made); END IF;
  IF made = ids THEN
    granted := fences;
    RETURN NEXT;
    RETURN;
  END IF;

  granted := (SELECT array_agg(coalesce(fences[array_position(made, ids[a.number])], 0) ORDER BY a.number)
    FROM generate_series(1, different) a(number));
  fences := granted;
  RETURN NEXT;
  granted := NULL;
  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN fences[n] <> 0;
    number := n;
    answered := idem.reserve_one(
      ROW(ids[n], scopes[n], operations[n], asked_generation, substr(offered[n], 1, 36), tokens[n], owners[n],
          leases[n], policies[n]::idem.lease_policy, dispatches[n], retentions[n], tombstones[n])::idem.reservation,
      idem.fingerprints(offered[n]), NULL, NULL, NULL, false);
    RETURN NEXT;
  END LOOP;
END $$;
