-- The steps of a service's transaction on its one record (protocol.md §17), one statement each. They decide as the
-- functions before them, and call those where the record is not in a usual state: new, or running under the caller's
-- attempt. The steps for many records are in 34 and 41.
--
--   IDM07  the transaction is not the one in which the attempt was admitted

CREATE OR REPLACE FUNCTION idem.must_be_admitted(number text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM number COLLATE "C" THEN
    RAISE EXCEPTION 'the transaction is not the one in which the attempt was admitted' USING ERRCODE = 'IDM07';
  END IF;
END $$;

-- Each of them reads one record by the key's index. A plan that was made while the table was new has no statistics and
-- is kept: so always by index.

-- The right to run the work of a key that has no record: its fence, the transaction's number, and the moment in
-- milliseconds. NULL where there is a record, another transaction makes one, or the generation is another: then the
-- caller uses idem.reserve_alone(). It waits for no lock and writes nothing. Until this transaction ends, no other can
-- make that record (idem.lock_of()). The record is written with its answer when the work is done (idem.complete_new()),
-- or earlier where something may look for it (idem.make_new()).
CREATE OR REPLACE FUNCTION idem.admit_new(asked_generation bigint, asked_id uuid) RETURNS text[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  is_new boolean;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.must_read_committed(); END IF;
  -- For both locks see idem.begin_reserves(). The next statement sees all that was committed before.
  IF NOT pg_try_advisory_xact_lock_shared(1229210957, 1) THEN RETURN NULL; END IF;
  IF NOT pg_try_advisory_xact_lock(idem.lock_of(asked_id)) THEN RETURN NULL; END IF;
  SELECT i.generation = asked_generation AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = asked_id)
    INTO is_new FROM idem.identity i WHERE i.singleton;
  IF is_new IS NOT TRUE THEN RETURN NULL; END IF;
  RETURN ARRAY[nextval('idem.fences')::text, pg_current_xact_id()::text,
               idem.ms_until(idem.now(), idem.epoch())::text];
END $$;

-- The record of a key that was admitted as new, running.
CREATE OR REPLACE FUNCTION idem.make_new(
  admitted text, began bigint, asked_generation bigint, asked_id uuid, scope text, operation text, fingerprint bytea,
  asked_fence bigint, asked_token uuid, owner text, lease bigint, policy idem.lease_policy, dispatched boolean,
  retention bigint, tombstone bigint
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.epoch() + idem.ms(began);
  due_at timestamptz := at + idem.ms(lease);
BEGIN
  PERFORM idem.must_be_admitted(admitted);
  PERFORM idem.be_durable();
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, created_at, changed_at, unsent_token)
  VALUES
    (asked_id, make_new.scope, make_new.operation, asked_generation, make_new.fingerprint, 'in_progress', asked_fence,
     asked_token, make_new.owner, due_at, make_new.dispatched, policy, make_new.retention, make_new.tombstone, at, at,
     CASE WHEN NOT make_new.dispatched THEN asked_token END);
  INSERT INTO idem.lease_due_batches VALUES (due_at, ARRAY[asked_id]);
END $$;

-- The same with its answer; returns when that expires. It fails (23505) if a transaction without the lock made the key.
CREATE OR REPLACE FUNCTION idem.complete_new(
  admitted text, began bigint, asked_generation bigint, asked_id uuid, scope text, operation text, fingerprint bytea,
  asked_fence bigint, asked_token uuid, owner text, policy idem.lease_policy, dispatched boolean, retention bigint,
  tombstone bigint, head bytea, body bytea, reference text
) RETURNS timestamptz LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz;
  until timestamptz;
  apart bigint;
  is_small boolean := idem.is_small(head, body);
BEGIN
  IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM admitted COLLATE "C" THEN
    PERFORM idem.must_be_admitted(admitted);
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM idem.be_durable(); END IF;
  at := idem.now();
  until := at + idem.ms(retention);
  IF NOT is_small THEN apart := nextval('idem.answer_numbers'); END IF;
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, response_head, response_body, answer, response_status, body_kept, checksum,
     upstream_reference, created_at, changed_at, completed_at, expires_at, tombstone_until)
  VALUES
    (asked_id, complete_new.scope, complete_new.operation, asked_generation, complete_new.fingerprint, 'completed',
     asked_fence, asked_token, complete_new.owner, idem.epoch(), complete_new.dispatched, policy,
     complete_new.retention, complete_new.tombstone, CASE WHEN is_small THEN head END,
     CASE WHEN is_small THEN body END, apart, idem.status_of(head), idem.has_body(head),
     idem.checksum(asked_id, complete_new.fingerprint, head, body), reference, idem.epoch() + idem.ms(began), at, at,
     until, until + idem.ms(complete_new.tombstone));
  IF NOT is_small THEN INSERT INTO idem.answers VALUES (until, apart, head, body); END IF;
  INSERT INTO idem.expiry_due_batches VALUES (until, ARRAY[asked_id]);
  RETURN until;
END $$;

-- Locks a record for its owner's work; waits as long as lock_timeout allows. Returns the transaction's number, whether
-- the attempt is the record's, and the record's state. NULL: there is no record.
CREATE OR REPLACE FUNCTION idem.admit(asked_id uuid, asked_fence bigint, asked_token uuid) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  is_usual boolean;
BEGIN
  -- Locks the record before anything is read of it. A whole record in a variable costs a quarter of the call.
  SELECT t.state = 'in_progress' AND t.token = asked_token AND t.fence = asked_fence AND NOT idem.contradicts_itself(t)
    INTO is_usual FROM idem.slots t WHERE t.id = asked_id FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF is_usual THEN RETURN ARRAY[pg_current_xact_id()::text, 'own', 'in_progress']; END IF;
  SELECT * INTO s FROM idem.slots t WHERE t.id = asked_id;
  PERFORM idem.must_not_contradict_itself(s);
  at := idem.now();
  RETURN ARRAY[pg_current_xact_id()::text,
               CASE WHEN idem.is_live(s, at) AND idem.is_same_attempt(s, asked_fence, asked_token) THEN 'own'
                    ELSE 'other' END,
               idem.state_at(s, at)::text];
END $$;

-- Ends the attempt with its answer in the transaction of this number, which has the record's lock; returns when the
-- answer expires. Raises if it does not complete the record, so that a COMMIT sent behind it commits nothing. The
-- detail of IDM01 (stale) and IDM02 (settled) is the record's state.
CREATE OR REPLACE FUNCTION idem.complete_admitted(
  admitted text, asked_id uuid, asked_fence bigint, asked_token uuid, head bytea, body bytea, reference text,
  OUT until timestamptz, OUT is_contradicted boolean
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz;
  is_small boolean := idem.is_small(head, body);
  apart bigint;
  reply idem.owner_reply;
BEGIN
  IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM admitted COLLATE "C" THEN
    PERFORM idem.must_be_admitted(admitted);
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM idem.be_durable(); END IF;
  at := idem.now();
  UPDATE idem.slots s SET
    state = 'completed', request = NULL, sealed_key = NULL, release_basis = NULL, last_error_code = '',
    reconcile_after = NULL, reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
    expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
    response_head = CASE WHEN is_small THEN head END, response_body = CASE WHEN is_small THEN body END,
    answer = CASE WHEN NOT is_small THEN nextval('idem.answer_numbers') END,
    response_status = idem.status_of(head), body_kept = idem.has_body(head),
    checksum = idem.checksum(s.id, s.fingerprint, head, body),
    upstream_reference = CASE WHEN reference = '' COLLATE "C" THEN s.upstream_reference ELSE reference END
  WHERE s.id = asked_id AND s.state = 'in_progress' AND s.token = asked_token AND asked_fence IN (0, s.fence)
    AND s.charged = 0                    -- idem.owner_one() completes counted records, and those with evidence.
    AND s.response_status IS NULL AND NOT s.contested AND s.last_error_code = '' COLLATE "C"
  RETURNING s.expires_at, s.answer INTO until, apart;
  IF FOUND THEN
    IF apart IS NOT NULL THEN INSERT INTO idem.answers VALUES (until, apart, head, body); END IF;
    INSERT INTO idem.expiry_due_batches VALUES (until, ARRAY[asked_id]);
    is_contradicted := false;
    RETURN;
  END IF;
  reply := idem.owner_one('complete', asked_id, asked_fence, asked_token, NULL, NULL, head, body, reference, NULL, NULL,
                          NULL, NULL, false);
  IF reply.verdict = 'done' THEN
    until := reply.expires_at;
    SELECT s.contested INTO is_contradicted FROM idem.slots s WHERE s.id = asked_id;
    RETURN;
  END IF;
  IF reply IS NULL THEN
    RAISE EXCEPTION 'another transaction holds the record' USING ERRCODE = 'IDM04';
  END IF;
  RAISE EXCEPTION 'the attempt is not the current one, or has ended' USING DETAIL = coalesce(reply.state::text, ''),
    ERRCODE = CASE reply.verdict WHEN 'stale' THEN 'IDM01' ELSE 'IDM02' END;
END $$;
