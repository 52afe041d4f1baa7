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

-- Many owners' verbs, each of another record, in the order of their ids. Completions of running attempts,
-- which is nearly all there is, are one statement; rows that somebody holds are left alone.
CREATE FUNCTION idem.owners_many(
  verbs text[], ids uuid[], fences bigint[], tokens uuid[], leases bigint[], recovery_points text[],
  heads bytea[], bodies bytea[], refs text[], bases idem.release_basis[], error_codes text[],
  retry_ins bigint[], reconcile_ins bigint[]
) RETURNS SETOF idem.numbered_reply LANGUAGE plpgsql
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  finished integer[];
  until timestamptz[];
  settled uuid[];
  due_at timestamptz;
  large bigint[];
  larger integer;
  reply idem.owner_reply;
  row idem.numbered_reply;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  WITH held AS MATERIALIZED (
    -- Nobody is waited for here, so the order in which rows are locked does not matter.
    SELECT s.ctid AS place, a.number, a.head, a.body, a.reference,
           coalesce(idem.is_small(a.head, a.body), false) AS is_small
      FROM unnest(verbs, ids, fences, tokens, heads, bodies, refs)
        WITH ORDINALITY AS a(verb, id, fence, token, head, body, reference, number)
        JOIN idem.slots s ON s.id = a.id
      WHERE a.verb = 'complete' AND s.state = 'in_progress' AND s.token = a.token AND (a.fence = 0 OR s.fence = a.fence)
      FOR UPDATE OF s SKIP LOCKED
  ), settled AS (
    UPDATE idem.slots s SET
      state = 'completed', request = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
      reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
      expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
      response_head = CASE WHEN h.is_small THEN h.head END, response_body = CASE WHEN h.is_small THEN h.body END,
      answer = CASE WHEN NOT h.is_small THEN nextval('idem.answer_numbers') END,
      response_status = idem.status_of(h.head), body_kept = idem.has_body(h.head),
      upstream_reference = CASE h.reference WHEN '' THEN s.upstream_reference ELSE h.reference END
    FROM held h WHERE s.ctid = h.place
    RETURNING h.number, s.id, s.expires_at, s.answer
  )
  SELECT array_agg(d.number), array_agg(d.expires_at), array_agg(d.id), min(d.expires_at), array_agg(d.answer), count(d.answer)
    INTO finished, until, settled, due_at, large, larger FROM settled d;
  IF finished IS NOT NULL THEN INSERT INTO idem.expiry_looks VALUES (due_at, settled); END IF;
  IF larger > 0 THEN
    INSERT INTO idem.answers
      SELECT d.expires_at, d.answer, heads[d.number], bodies[d.number]
        FROM unnest(finished, until, large) d(number, expires_at, answer) WHERE d.answer IS NOT NULL;
  END IF;

  row.usual := finished;
  row.until := until;
  RETURN NEXT row;
  IF cardinality(finished) = cardinality(ids) THEN RETURN; END IF;

  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN coalesce(n = ANY (finished), false);
    reply := idem.owner_one(verbs[n], ids[n], fences[n], tokens[n], leases[n], recovery_points[n], heads[n],
                            bodies[n], refs[n], bases[n], error_codes[n], retry_ins[n], reconcile_ins[n], false);
    row := ROW(NULL, NULL, n, reply IS NULL, reply.state, reply.verdict, reply.expires_at);
    RETURN NEXT row;
  END LOOP;
END $$;

-- Many reserves, in the order of their ids; as above, where usual is a key that was new: it is to be run. Of
-- several of one key one makes the record, and `winners` has its token: which one it is, is the plan's choice.
CREATE FUNCTION idem.reserve_many(
  asked_generation bigint, ids uuid[], scopes text[], operations text[], offered bytea[], tokens uuid[],
  owners text[], leases bigint[], policies idem.lease_policy[], dispatches boolean[], retentions bigint[],
  tombstones bigint[]
) RETURNS TABLE (usual uuid[], winners uuid[], fences bigint[], number integer, answered idem.outcome) LANGUAGE plpgsql
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
  at timestamptz;
  current bigint;
  made uuid[];
  theirs uuid[];
  granted bigint[];
  due_at timestamptz;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.see_what_is_committed(); END IF;
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  SELECT i.generation INTO current FROM idem.identity i;
  IF current IS DISTINCT FROM asked_generation THEN PERFORM idem.in_generation(asked_generation); END IF;
  at := idem.now();
  WITH inserted AS (
    INSERT INTO idem.slots
      (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
       lease_policy, retention, tombstone, created_at, changed_at)
    SELECT a.id, a.scope, a.operation, asked_generation, substr(a.offered, 1, 36), 'in_progress',
           nextval('idem.fences'), a.token, a.owner, at + idem.ms(a.lease), a.dispatched, a.policy, a.retention,
           a.tombstone, at, at
    FROM unnest(ids, scopes, operations, offered, tokens, owners, leases, policies, dispatches, retentions, tombstones)
      AS a(id, scope, operation, offered, token, owner, lease, policy, dispatched, retention, tombstone)
    -- An INSERT would wait for who holds what lies there already.
    WHERE NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = a.id) AND pg_try_advisory_xact_lock(idem.lock_of(a.id))
    ON CONFLICT DO NOTHING
    RETURNING id, token, fence, locked_until
  )
  SELECT array_agg(i.id), array_agg(i.token), array_agg(i.fence), min(i.locked_until)
    INTO made, theirs, granted, due_at FROM inserted i;
  IF made IS NOT NULL THEN INSERT INTO idem.lease_looks VALUES (due_at, made); END IF;

  usual := made;
  winners := theirs;
  fences := granted;
  RETURN NEXT;
  IF cardinality(made) = cardinality(ids) THEN RETURN; END IF;
  usual := NULL;
  winners := NULL;
  fences := NULL;

  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN coalesce(tokens[n] = theirs[array_position(made, ids[n])], false);
    number := n;
    answered := idem.reserve_one(
      ROW(ids[n], scopes[n], operations[n], asked_generation, substr(offered[n], 1, 36), tokens[n], owners[n],
          leases[n], policies[n], dispatches[n], retentions[n], tombstones[n])::idem.reservation,
      idem.fingerprints(offered[n]), NULL, NULL, NULL, false);
    RETURN NEXT;
  END LOOP;
END $$;
