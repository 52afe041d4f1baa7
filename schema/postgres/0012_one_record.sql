-- The steps of a service's transaction at its one record (protocol.md §17), as one statement each. They decide what
-- the functions before them decide, which they call wherever a record is not in the usual state: new, or running
-- under the attempt that asks. What is asked for many records at once is in 0005.
--
--   IDM07  the transaction is not the one in which the attempt was admitted

-- What they are made for is one look by the key's index each. A table that was just made has no statistics, and a
-- plan of then is kept: so by index, always.

-- Makes the record of a key that has none: its fence, and the transaction's number. No row is written and NULL is
-- answered where there is one, or somebody makes one, or the generation is another: idem.reserve_alone() has to be
-- asked then. Waits for nobody.
CREATE FUNCTION idem.reserve_new(
  asked_generation bigint, asked_id uuid, scope text, operation text, fingerprint bytea, token uuid, owner text,
  lease bigint, policy idem.lease_policy, dispatched boolean, retention bigint, tombstone bigint
) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz;
  due_at timestamptz;
  made bigint;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.see_what_is_committed(); END IF;
  -- Both locks and why: idem.reserve_many(). The statement behind them sees all that was committed before.
  IF NOT pg_try_advisory_xact_lock_shared(1229210957, 1) THEN RETURN NULL; END IF;
  IF NOT pg_try_advisory_xact_lock(idem.lock_of(asked_id)) THEN RETURN NULL; END IF;
  at := idem.now();
  due_at := at + idem.ms(lease);
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, created_at, changed_at)
  SELECT asked_id, reserve_new.scope, reserve_new.operation, asked_generation, reserve_new.fingerprint, 'in_progress',
         nextval('idem.fences'), reserve_new.token, reserve_new.owner, due_at, reserve_new.dispatched, policy,
         reserve_new.retention, reserve_new.tombstone, at, at
  FROM idem.identity i
  WHERE i.singleton AND i.generation = asked_generation
    AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = asked_id)
  RETURNING fence INTO made;
  IF made IS NULL THEN RETURN NULL; END IF;
  INSERT INTO idem.lease_looks VALUES (due_at, ARRAY[asked_id]);
  RETURN ARRAY[made::text, pg_current_xact_id()::text];
END $$;

-- Locks a record for its owner's work, waiting for who holds it as long as lock_timeout allows: the transaction's
-- number, whether the attempt is the record's, and the record's state. NULL: there is no record.
CREATE FUNCTION idem.admit(asked_id uuid, asked_fence bigint, asked_token uuid) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  s idem.slots;
  at timestamptz;
BEGIN
  -- First the lock, then all that is read of the record.
  SELECT * INTO s FROM idem.slots t WHERE t.id = asked_id FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF s.state = 'in_progress' AND s.token = asked_token AND asked_fence = s.fence THEN
    RETURN ARRAY[pg_current_xact_id()::text, 'own', 'in_progress'];
  END IF;
  at := idem.now();
  RETURN ARRAY[pg_current_xact_id()::text,
               CASE WHEN idem.is_live(s, at) AND idem.is_same_attempt(s, asked_fence, asked_token) THEN 'own'
                    ELSE 'other' END,
               idem.state_at(s, at)::text];
END $$;

-- Ends the attempt with its answer in the transaction of this number, which has the record's lock: when the answer
-- expires. Raises where it is not done, so that a COMMIT sent behind it commits nothing; IDM01 (stale) and IDM02
-- (settled) have the record's state as their detail.
CREATE FUNCTION idem.complete_admitted(admitted text, asked_id uuid, asked_fence bigint, asked_token uuid, head bytea,
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
    RAISE EXCEPTION 'the transaction is not the one in which the attempt was admitted' USING ERRCODE = 'IDM07';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  at := idem.now();
  UPDATE idem.slots s SET
    state = 'completed', request = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
    reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
    expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
    response_head = CASE WHEN is_small THEN head END, response_body = CASE WHEN is_small THEN body END,
    answer = CASE WHEN NOT is_small THEN nextval('idem.answer_numbers') END,
    response_status = idem.status_of(head), body_kept = idem.has_body(head),
    upstream_reference = CASE reference WHEN '' THEN s.upstream_reference ELSE reference END
  WHERE s.id = asked_id AND s.state = 'in_progress' AND s.token = asked_token AND asked_fence IN (0, s.fence)
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
