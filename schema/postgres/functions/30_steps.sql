-- The state machine of protocol.md §3–§5, for one record at a time. `s` is the record, which the caller has locked.
-- These functions change `s`, and write due batches and large answers; idem.update_record() writes the record. The
-- reference is src/core/transitions; tests/store_conformance compares the two verb by verb.

CREATE OR REPLACE FUNCTION idem.clear_outcome(INOUT s idem.slots) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  s.release_basis := NULL;
  s.last_error_code := '';
  s.reconcile_after := NULL;
  s.reconcile_attempts := 0;
END $$;

-- An event reported the work as refused, while the attempt runs or its end is unknown.
CREATE OR REPLACE FUNCTION idem.is_denied(s idem.slots) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN s.state IN ('in_progress', 'unknown') AND s.last_error_code = 'event_said_failed' COLLATE "C";

CREATE OR REPLACE FUNCTION idem.begin_attempt(INOUT s idem.slots, token uuid, owner text, lease bigint,
                                   dispatched boolean, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.state := 'in_progress';
  s.fence := nextval('idem.fences');
  s.token := begin_attempt.token;
  s.owner := begin_attempt.owner;
  s.locked_until := at + idem.ms(lease);
  s.dispatched := begin_attempt.dispatched;
  s.unsent_token := CASE WHEN NOT begin_attempt.dispatched THEN begin_attempt.token END;
  s.changed_at := at;
  -- The reference names an earlier attempt's work: a question about this attempt must not use it.
  s.upstream_reference := '';
  s.contested := false;
  IF s.request IS NULL THEN s.expires_at := NULL; END IF;
  PERFORM idem.schedule_lease_check(s.id, s.locked_until);
END $$;

CREATE OR REPLACE FUNCTION idem.finish(INOUT s idem.slots, head bytea, body bytea, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Compares the answer with an event that came before it. The caller may be a service that does not look at the
  -- record's mark, so the server's log has the contradiction, too.
  IF idem.status_of(head) < 400 THEN s.contested := idem.is_denied(s); END IF;
  IF s.contested THEN
    RAISE WARNING 'the answer of % contradicts an event', idem.handle(s.id);
  END IF;
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
  s.checksum := idem.checksum(s.id, s.fingerprint, head, body);
  IF idem.is_small(head, body) THEN
    s.response_head := head;
    s.response_body := body;
  ELSE
    s.answer := nextval('idem.answer_numbers');
    INSERT INTO idem.answers VALUES (s.expires_at, s.answer, head, body);
  END IF;
  IF s.charged > 0 THEN s.charged := idem.record_charge() + idem.answer_charge(head, body); END IF;
  PERFORM idem.schedule_expiry_check(s.id, s.expires_at);
END $$;

CREATE OR REPLACE FUNCTION idem.time_out(INOUT s idem.slots, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  s := idem.finish(s,
    idem.answer_head(408, '[["Content-Type", "application/problem+json"], ["Cache-Control", "no-store"]]', true),
    convert_to('{"type":"/.idem/problems/request_timeout","title":"The request took too long to arrive","status":408,'
      || '"detail":"The stored request expired before it could be run.","code":"request_timeout",'
      || '"operation_ref":"' || idem.handle(s.id) || '","state":"completed","retry":"never"}' || E'\n', 'UTF8'), at);
END $$;

CREATE OR REPLACE FUNCTION idem.release_attempt(INOUT s idem.slots, basis idem.release_basis, error_code text,
                                     retry_in bigint, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF s.contested THEN
    -- Evidence says that the attempt ran, and its end says that it did not.
    s := idem.turn_unknown(s, error_code, at);
    s.reconcile_after := at;
    RETURN;
  END IF;
  IF s.request IS NOT NULL AND at >= s.expires_at THEN
    s := idem.time_out(s, at);
    RETURN;
  END IF;
  s := idem.clear_outcome(s);
  s.release_basis := basis;
  s.last_error_code := error_code;
  s.changed_at := at;
  IF s.request IS NOT NULL THEN
    s.state := 'pending';
    s.locked_until := at + idem.ms(retry_in);
    PERFORM idem.schedule_lease_check(s.id, s.expires_at);
  ELSE
    s.state := 'failed_retryable';
    s.locked_until := idem.epoch();
    s.expires_at := at + idem.ms(s.retention);
    PERFORM idem.schedule_expiry_check(s.id, s.expires_at);
  END IF;
END $$;

-- Keeps locked_until: the attempt could still send until then, and negative evidence counts only after it.
CREATE OR REPLACE FUNCTION idem.turn_unknown(INOUT s idem.slots, error_code text, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_denied(s) THEN error_code := 'event_said_failed'; END IF;
  s := idem.clear_outcome(s);
  s.state := 'unknown';
  s.last_error_code := error_code;
  s.changed_at := at;
END $$;

-- Ends an expired lease or a pending request past its expiry; otherwise nothing.
CREATE OR REPLACE FUNCTION idem.end_overdue(INOUT s idem.slots, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF s.state = 'in_progress' AND at >= s.locked_until THEN
    IF idem.has_sent_nothing(s) THEN
      -- Nothing was sent, and after its lease an owner may not send: that is proof (§3, §11).
      s := idem.release_attempt(s, 'proven', 'lease_expired', 0, at);
    ELSIF s.lease_policy = 'unknown' THEN
      s := idem.turn_unknown(s, 'lease_expired', at);
    END IF;
  ELSIF s.state = 'pending' AND at >= s.expires_at THEN
    s := idem.time_out(s, at);
  END IF;
END $$;

-- No step goes on from a record that contradicts itself. Called by those that do not answer `damaged` instead.
CREATE OR REPLACE FUNCTION idem.must_not_contradict_itself(s idem.slots) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.contradicts_itself(s) THEN
    RAISE EXCEPTION 'the record of % contradicts itself', idem.handle(s.id) USING ERRCODE = 'IDM08',
      HINT = 'A medium, or a statement by hand, has changed it. Inform an operator.';
  END IF;
END $$;

-- Writes the changed record, and what lies beside it.
CREATE OR REPLACE FUNCTION idem.update_record(s idem.slots) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
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
    completed_at = s.completed_at, expires_at = s.expires_at, tombstone_until = s.tombstone_until,
    charged = s.charged, contested = s.contested, provider = s.provider, sealed_key = s.sealed_key,
    checksum = s.checksum, unsent_token = s.unsent_token
  WHERE t.id = s.id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the record of % is gone', idem.handle(s.id) USING ERRCODE = 'IDM04';
  END IF;
  PERFORM idem.add_usage(s.scope, idem.active_of(s) - idem.active_of(before), s.charged - before.charged);
  PERFORM idem.keep_parked(s);
END $$;

-- Drops the answer, also a large one beside the record.
CREATE OR REPLACE FUNCTION idem.drop_answer(INOUT s idem.slots) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
  s.response_head := NULL;
  s.response_body := NULL;
  s.answer := NULL;
  s.response_status := NULL;
  s.body_kept := NULL;
  s.checksum := NULL;
  IF s.charged > 0 THEN s.charged := idem.record_charge(); END IF;
END $$;
