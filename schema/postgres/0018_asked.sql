-- Who is asked how an attempt ended, and what by: kept with the record, because the route may say otherwise by the time
-- that is asked, and because only the client's key names it to some of them.

ALTER TABLE idem.slots ADD COLUMN provider text;     -- a name of the gateways' settings; none: nobody, or it was not said
ALTER TABLE idem.slots ADD COLUMN sealed_key bytea;  -- the client's key, where the provider knows it by nothing else; until it completes
ALTER TYPE idem.reservation ADD ATTRIBUTE provider text, ADD ATTRIBUTE sealed_key bytea;

-- What the route says today, which holds from the next attempt on.
CREATE FUNCTION idem.take_route(INOUT s idem.slots, r idem.reservation) LANGUAGE plpgsql AS $$
BEGIN
  s.lease_policy := r.lease_policy;
  s.retention := r.retention;
  s.tombstone := r.tombstone;
  s.provider := r.provider;
  s.sealed_key := r.sealed_key;
END $$;

-- ---- what there was, with them ----

CREATE OR REPLACE FUNCTION idem.finish(INOUT s idem.slots, head bytea, body bytea, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.request := NULL;
  s.sealed_key := NULL;
  s.state := 'completed';
  s.locked_until := idem.epoch();
  s.changed_at := at;
  s.completed_at := at;
  s.expires_at := at + idem.ms(s.retention);
  s.tombstone_until := s.expires_at + idem.ms(s.tombstone);
  s.response_status := idem.status_of(head);
  s.body_kept := idem.has_body(head);
  IF idem.is_small(head, body) THEN
    s.response_head := head;
    s.response_body := body;
  ELSE
    s.answer := nextval('idem.answer_numbers');
    INSERT INTO idem.answers VALUES (s.expires_at, s.answer, head, body);
  END IF;
  IF s.charged > 0 THEN s.charged := idem.record_charge() + idem.answer_charge(head, body); END IF;
  PERFORM idem.look_at_expiry(s.id, s.expires_at);
END $$;

CREATE OR REPLACE FUNCTION idem.put(s idem.slots) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before idem.slots;
BEGIN
  SELECT t.state, t.charged INTO before.state, before.charged FROM idem.slots t WHERE t.id = s.id;
  UPDATE idem.slots t SET
    scope = s.scope, operation = s.operation, generation = s.generation, fingerprint = s.fingerprint,
    state = s.state, fence = s.fence, token = s.token, owner = s.owner, locked_until = s.locked_until,
    dispatched = s.dispatched, lease_policy = s.lease_policy, retention = s.retention, tombstone = s.tombstone,
    recovery_point = s.recovery_point, request = s.request, response_head = s.response_head,
    response_body = s.response_body, answer = s.answer, response_status = s.response_status,
    body_kept = s.body_kept, release_basis = s.release_basis, last_error_code = s.last_error_code,
    reconcile_after = s.reconcile_after, reconcile_attempts = s.reconcile_attempts,
    upstream_reference = s.upstream_reference, created_at = s.created_at, changed_at = s.changed_at,
    completed_at = s.completed_at, expires_at = s.expires_at, tombstone_until = s.tombstone_until, charged = s.charged, contested = s.contested,
    provider = s.provider, sealed_key = s.sealed_key
  WHERE t.id = s.id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the record of % is not where it was', idem.handle(s.id) USING ERRCODE = 'IDM04';
  END IF;
  PERFORM idem.note_usage(s.scope, idem.active_of(s) - idem.active_of(before), s.charged - before.charged);
  PERFORM idem.keep_standing(s);
END $$;

CREATE OR REPLACE FUNCTION idem.fresh(r idem.reservation, at timestamptz) RETURNS idem.slots LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
BEGIN
  s.id := r.id;
  s.scope := r.scope;
  s.operation := r.operation;
  s.generation := r.generation;
  s.fingerprint := r.fingerprint;
  s.state := 'in_progress';
  s.fence := 0;
  s.token := idem.nobody();
  s.owner := '';
  s.locked_until := idem.epoch();
  s.dispatched := false;
  s := idem.take_route(s, r);
  s.recovery_point := '';
  s.last_error_code := '';
  s.reconcile_attempts := 0;
  s.charged := 0;
  s.contested := false;
  s.upstream_reference := '';
  s.created_at := at;
  s.changed_at := at;
  RETURN s;
END $$;

CREATE OR REPLACE FUNCTION idem.insert_new(s idem.slots) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, recovery_point, request, created_at, changed_at, expires_at, charged,
     provider, sealed_key)
  VALUES
    (s.id, s.scope, s.operation, s.generation, s.fingerprint, s.state, s.fence, s.token, s.owner, s.locked_until,
     s.dispatched, s.lease_policy, s.retention, s.tombstone, s.recovery_point, s.request, s.created_at,
     s.changed_at, s.expires_at, s.charged, s.provider, s.sealed_key)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM idem.note_usage(s.scope, idem.active_of(s), s.charged);
  PERFORM idem.keep_standing(s);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION idem.reserve_step(s idem.slots, r idem.reservation, request bytea, at timestamptz, q idem.quota)
RETURNS idem.outcome LANGUAGE plpgsql AS $$
DECLARE
  before idem.slots := s;
  ended boolean;
  wait bigint;
  o idem.outcome;
BEGIN
  IF NOT idem.is_live(s, at) THEN
    IF q IS NOT NULL THEN
      wait := idem.refuse_key(r.scope, q, r.retention, at, idem.active_of(s), s.charged);
      IF wait IS NOT NULL THEN RETURN idem.exceeds(r, wait); END IF;
    END IF;
    s := idem.fresh(r, at);
    IF q IS NOT NULL THEN s.charged := idem.record_charge(); END IF;
    ended := false;
  ELSE
    s := idem.swept(s, at);
    ended := before.state = 'in_progress';
    IF s.state NOT IN ('in_progress', 'failed_retryable') THEN
      PERFORM idem.put(s);
      IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
      RETURN idem.answers_as(s, ended, at);
    END IF;
    IF request IS NOT NULL AND s.state = 'in_progress' AND (s.request IS NOT NULL OR s.lease_policy <> 'rerun') THEN
      -- A resumable attempt whose owner is gone. Only a reserve takes it up (§3); what may be run again is run as the
      -- stored request.
      o := idem.answers_as(s, false, at);
      IF s.request IS NOT NULL THEN o.outcome := 'pending'; END IF;
      RETURN o;
    END IF;
    s := idem.take_route(s, r);
  END IF;
  IF request IS NOT NULL THEN
    s := idem.accepted(s, request, at);
    o := idem.answers_as(s, ended, at);
  ELSE
    s := idem.begin_attempt(s, r.token, r.owner, r.lease, r.dispatched, at);
    -- Fresh where what lay there counted as no record.
    o := idem.executes(s, idem.is_live(before, at), ended);
  END IF;
  PERFORM idem.put(s);
  IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
  RETURN o;
END $$;

DROP FUNCTION idem.reserve_alone(bigint, uuid, text, text, bytea, uuid, text, bigint, idem.lease_policy, boolean,
                                 bigint, bigint, uuid[], bytea[], bytea, bigint, bigint, bigint, bigint);
CREATE FUNCTION idem.reserve_alone(
  asked_generation bigint, id uuid, scope text, operation text, offered bytea, token uuid, owner text, lease bigint,
  policy idem.lease_policy, dispatched boolean, retention bigint, tombstone bigint, also uuid[],
  also_offered bytea[], request bytea, key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL,
  quota_keys bigint DEFAULT NULL, quota_bytes bigint DEFAULT NULL,
  provider text DEFAULT NULL, sealed_key bytea DEFAULT NULL
) RETURNS idem.outcome LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.in_generation(asked_generation);
  RETURN idem.reserve_one(
    ROW(id, scope, operation, asked_generation, substr(offered, 1, 36), token, owner, lease, policy, dispatched,
        retention, tombstone, provider, sealed_key)::idem.reservation,
    idem.fingerprints(offered), also, also_offered, request, false,
    CASE WHEN key_interval IS NOT NULL THEN ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota END);
END $$;

DROP FUNCTION idem.reserve_many(bigint, integer, uuid[], text[], text[], bytea[], uuid[], text[], bigint[], text[],
                                boolean[], bigint[], bigint[], bigint, bigint, bigint, bigint);
CREATE FUNCTION idem.reserve_many(
  asked_generation bigint, different integer, ids uuid[], scopes text[], operations text[], offered bytea[],
  tokens uuid[], owners text[], leases bigint[], policies text[], dispatches boolean[], retentions bigint[],
  tombstones bigint[], key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL, quota_keys bigint DEFAULT NULL,
  quota_bytes bigint DEFAULT NULL, providers text[] DEFAULT NULL, sealed_keys bytea[] DEFAULT NULL
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
  fresh integer[] := ARRAY(SELECT generate_series(1, different));  -- that may be made
  q idem.quota;
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
  IF key_interval IS NOT NULL THEN
    q := ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota;
    fresh := ARRAY(SELECT a.number FROM generate_series(1, different) a(number)
      WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number]));
    IF q.keys > 0 OR q.key_interval > 0 THEN
      -- In one order by all. Who waits has no other locks but of keys, for which nobody waits.
      PERFORM pg_advisory_xact_lock(1229210958, l.number)
        FROM (SELECT DISTINCT hashtext(scopes[f.number]) AS number FROM unnest(fresh) f(number) ORDER BY 1) l;
      at := idem.now();
    END IF;
    WITH numbered AS MATERIALIZED (
      SELECT f.number, scopes[f.number] AS scope,
             row_number() OVER (PARTITION BY scopes[f.number] ORDER BY f.number) AS nth
        FROM unnest(fresh) f(number)
    ), rooms AS MATERIALIZED (
      SELECT n.scope, idem.room(n.scope, q, at) AS keys FROM numbered n WHERE n.nth = 1
    )
    SELECT coalesce(array_agg(n.number ORDER BY n.number), '{}') INTO fresh
      FROM numbered n JOIN rooms r ON r.scope = n.scope WHERE n.nth <= r.keys;
  END IF;
  WITH inserted AS (
    INSERT INTO idem.slots
      (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
       lease_policy, retention, tombstone, created_at, changed_at, charged, provider, sealed_key)
    SELECT ids[a.number], scopes[a.number], operations[a.number], asked_generation, substr(offered[a.number], 1, 36),
           'in_progress', nextval('idem.fences'), tokens[a.number], owners[a.number], at + idem.ms(leases[a.number]),
           dispatches[a.number],
           CASE policies[a.number] WHEN 'unknown' THEN 'unknown' ELSE policies[a.number]::idem.lease_policy END,
           retentions[a.number], tombstones[a.number],
           at, at, CASE WHEN q IS NULL THEN 0 ELSE 1024 END, providers[a.number], sealed_keys[a.number]
    FROM unnest(fresh) a(number)
    WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number])
    RETURNING id, fence
  )
  SELECT array_agg(i.id), array_agg(i.fence) INTO made, fences FROM inserted i;
  IF q IS NOT NULL AND made IS NOT NULL THEN
    PERFORM idem.note_usage(n.scope, count(*), count(*) * idem.record_charge()), idem.pass_keys(n.scope, q, count(*), at)
      FROM (SELECT scopes[f.number] AS scope FROM unnest(fresh) f(number)) n GROUP BY n.scope;
  END IF;
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
          leases[n], policies[n]::idem.lease_policy, dispatches[n], retentions[n], tombstones[n],
          providers[n], sealed_keys[n])::idem.reservation,
      idem.fingerprints(offered[n]), NULL, NULL, NULL, false, q);
    RETURN NEXT;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION idem.owners_many(
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
  whose text[];
  more bigint[];
  reply idem.owner_reply;
  row idem.numbered_reply;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  WITH held AS MATERIALIZED (
    -- Nobody is waited for here, so the order in which rows are locked does not matter.
    SELECT s.ctid AS place, a.number, idem.is_small(heads[a.number], bodies[a.number]) IS TRUE AS is_small, s.charged AS charge
      FROM generate_series(1, cardinality(ids)) a(number) JOIN idem.slots s ON s.id = ids[a.number]
      WHERE verbs[a.number] = 'complete' AND s.state = 'in_progress' AND s.token = tokens[a.number]
        AND fences[a.number] IN (0, s.fence)
      FOR UPDATE OF s SKIP LOCKED
  ), settled AS (
    UPDATE idem.slots s SET
      state = 'completed', request = NULL, sealed_key = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
      reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
      expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
      response_head = CASE WHEN h.is_small THEN heads[h.number] END,
      response_body = CASE WHEN h.is_small THEN bodies[h.number] END,
      answer = CASE WHEN NOT h.is_small THEN nextval('idem.answer_numbers') END,
      response_status = idem.status_of(heads[h.number]), body_kept = idem.has_body(heads[h.number]),
      upstream_reference = CASE refs[h.number] WHEN '' THEN s.upstream_reference ELSE refs[h.number] END,
      charged = CASE WHEN h.charge = 0 THEN 0
                     WHEN h.is_small THEN 1024      -- idem.record_charge()
                     ELSE 1024 + octet_length(heads[h.number]) + octet_length(bodies[h.number]) END
    FROM held h WHERE s.ctid = h.place
    RETURNING h.number, s.expires_at, s.answer, s.scope, s.charged - h.charge AS more
  )
  SELECT array_agg(d.number), array_agg(d.expires_at), min(d.expires_at), count(d.answer),
         array_agg(d.scope) FILTER (WHERE d.more <> 0), array_agg(d.more) FILTER (WHERE d.more <> 0)
    INTO row.usual, row.until, due_at, larger, whose, more FROM settled d;
  IF whose IS NOT NULL THEN
    PERFORM idem.note_usage(n.scope, 0, sum(n.more)::bigint) FROM unnest(whose, more) n(scope, more) GROUP BY n.scope;
  END IF;
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

CREATE OR REPLACE FUNCTION idem.complete_admitted(admitted text, asked_id uuid, asked_fence bigint, asked_token uuid, head bytea,
                                       body bytea, reference text) RETURNS timestamptz LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz;
  is_small boolean := idem.is_small(head, body);
  until timestamptz;
  apart bigint;
  reply idem.owner_reply;
BEGIN
  IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM admitted THEN
    PERFORM idem.must_be_admitted(admitted);
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  at := idem.now();
  UPDATE idem.slots s SET
    state = 'completed', request = NULL, sealed_key = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
    reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
    expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
    response_head = CASE WHEN is_small THEN head END, response_body = CASE WHEN is_small THEN body END,
    answer = CASE WHEN NOT is_small THEN nextval('idem.answer_numbers') END,
    response_status = idem.status_of(head), body_kept = idem.has_body(head),
    upstream_reference = CASE reference WHEN '' THEN s.upstream_reference ELSE reference END
  WHERE s.id = asked_id AND s.state = 'in_progress' AND s.token = asked_token AND asked_fence IN (0, s.fence)
    AND s.charged = 0                    -- What is counted goes the long way.
  RETURNING s.expires_at, s.answer INTO until, apart;
  IF FOUND THEN
    IF apart IS NOT NULL THEN INSERT INTO idem.answers VALUES (until, apart, head, body); END IF;
    INSERT INTO idem.expiry_looks VALUES (until, ARRAY[asked_id]);
    RETURN until;
  END IF;
  reply := idem.owner_one('complete', asked_id, asked_fence, asked_token, NULL, NULL, head, body, reference, NULL, NULL,
                          NULL, NULL, false);
  IF reply.verdict = 'done' THEN RETURN reply.expires_at; END IF;
  IF reply IS NULL THEN
    RAISE EXCEPTION 'another transaction holds the record' USING ERRCODE = 'IDM04';
  END IF;
  RAISE EXCEPTION 'the attempt is not the current one, or has ended' USING DETAIL = coalesce(reply.state::text, ''),
    ERRCODE = CASE reply.verdict WHEN 'stale' THEN 'IDM01' ELSE 'IDM02' END;
END $$;

CREATE OR REPLACE FUNCTION idem.claim(token uuid, owner text, lease bigint, dispatched boolean)
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
  s.provider := NULL;                    -- It is sent by today's route.
  PERFORM idem.put(s);
  RETURN QUERY SELECT s.id, s.scope, s.operation, s.fence, s.request, s.recovery_point;
END $$;
