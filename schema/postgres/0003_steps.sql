-- The state machine of protocol.md §3–§5, for one record at a time. `s` is the record, locked by who
-- calls; nothing here reads or writes a table but for idem.put(), what lies beside the record (looks, large
-- answers) and the evidence log. The reference is src/core/transitions*.cpp; tests/store_conformance compares the
-- two verb by verb.

CREATE TYPE idem.verdict AS ENUM ('done', 'settled', 'stale');

-- How an owner's verb ended: `stale`, another attempt or nobody has the record; `settled`, this one had
-- ended before and the first ending stands.
CREATE TYPE idem.owner_reply AS (verdict idem.verdict, state idem.state, expires_at timestamptz);

-- What a reserve is answered with (§5). Which members mean something depends on the outcome.
CREATE TYPE idem.outcome AS (
  outcome text,                          -- execute, replay, in_progress, key_misuse, unknown, expired, pending,
                                         -- damaged: there was an answer, and it is not there
  operation uuid,                        -- the record
  fence bigint,                          -- execute: yours; in_progress: of the attempt that runs
  attempt uuid,                          -- execute: the token, as it was given
  recovery_point text,
  again boolean,                         -- execute: there was a record; its work is run once more
  state idem.state,
  is_other boolean,                      -- key_misuse: false where it may be the same request under other rules
  lease_remaining bigint,                -- ms
  locked_until timestamptz,
  since timestamptz,
  reconcile_in bigint,                   -- ms; none: nothing is scheduled
  completed_at timestamptz,
  expires_at timestamptz,
  expires_in bigint,                     -- ms
  response_status integer,
  response_head bytea,                   -- idem.headers() reads it
  response_body bytea,
  ended_lease boolean                    -- this reserve met an expired lease and ended it
);

CREATE FUNCTION idem.epoch() RETURNS timestamptz LANGUAGE sql IMMUTABLE RETURN '1970-01-01 00:00:00+00'::timestamptz;
CREATE FUNCTION idem.nobody() RETURNS uuid LANGUAGE sql IMMUTABLE RETURN '00000000-0000-0000-0000-000000000000'::uuid;

-- ---- what lies beside a record ----

CREATE FUNCTION idem.look_at_lease(id uuid, due_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.lease_looks VALUES (due_at, ARRAY[id]);
END $$;

CREATE FUNCTION idem.look_at_expiry(id uuid, due_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.expiry_looks VALUES (due_at, ARRAY[id]);
END $$;

-- With each change of a record and its making.
CREATE FUNCTION idem.keep_standing(s idem.slots) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF s.state IN ('pending', 'unknown') THEN
    INSERT INTO idem.standing AS t VALUES
      (s.id, s.state, CASE s.state WHEN 'pending' THEN s.locked_until ELSE s.changed_at END)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, moment = excluded.moment;
  ELSE
    DELETE FROM idem.standing t WHERE t.id = s.id;
  END IF;
END $$;

-- Above that many bytes an answer lies apart: a record shall be small enough for several in a page.
CREATE FUNCTION idem.is_small(head bytea, body bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN octet_length(head) + octet_length(body) <= 1000;

-- ---- elementary changes ----

CREATE FUNCTION idem.clear_outcome(INOUT s idem.slots) LANGUAGE plpgsql AS $$
BEGIN
  s.release_basis := NULL;
  s.last_error_code := '';
  s.reconcile_after := NULL;
  s.reconcile_attempts := 0;
END $$;

CREATE FUNCTION idem.begin_attempt(INOUT s idem.slots, token uuid, owner text, lease bigint, dispatched boolean,
                                   at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.state := 'in_progress';
  s.fence := nextval('idem.fences');
  s.token := begin_attempt.token;
  s.owner := begin_attempt.owner;
  s.locked_until := at + idem.ms(lease);
  s.dispatched := begin_attempt.dispatched;
  s.changed_at := at;
  IF s.request IS NULL THEN s.expires_at := NULL; END IF;
  PERFORM idem.look_at_lease(s.id, s.locked_until);
END $$;

CREATE FUNCTION idem.finish(INOUT s idem.slots, head bytea, body bytea, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.request := NULL;
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
  PERFORM idem.look_at_expiry(s.id, s.expires_at);
END $$;

CREATE FUNCTION idem.time_out(INOUT s idem.slots, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.finish(s,
    idem.answer_head(408, '[["Content-Type", "application/problem+json"], ["Cache-Control", "no-store"]]', true),
    convert_to('{"type":"/.idem/problems/request_timeout","title":"The request took too long to arrive","status":408,'
      || '"detail":"The stored request expired before it could be run.","code":"request_timeout",'
      || '"operation_ref":"' || idem.handle(s.id) || '","state":"completed","retry":"never"}' || E'\n', 'UTF8'), at);
END $$;

CREATE FUNCTION idem.release_attempt(INOUT s idem.slots, basis idem.release_basis, error_code text, retry_in bigint,
                                     at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
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
    PERFORM idem.look_at_lease(s.id, s.expires_at);
  ELSE
    s.state := 'failed_retryable';
    s.locked_until := idem.epoch();
    s.expires_at := at + idem.ms(s.retention);
    PERFORM idem.look_at_expiry(s.id, s.expires_at);
  END IF;
END $$;

-- locked_until stays: until then the attempt could still send, which negative evidence must know.
CREATE FUNCTION idem.turn_unknown(INOUT s idem.slots, error_code text, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.state := 'unknown';
  s.last_error_code := error_code;
  s.changed_at := at;
END $$;

-- Ends an expired lease or a pending request past its expiry; otherwise nothing.
CREATE FUNCTION idem.swept(INOUT s idem.slots, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  IF s.state = 'in_progress' AND at >= s.locked_until THEN
    IF NOT s.dispatched THEN
      -- Nothing was sent, and after its lease an owner may not send: that is proof (§3, §11).
      s := idem.release_attempt(s, 'proven', 'lease_expired', 0, at);
    ELSIF s.lease_policy = 'unknown' THEN
      s := idem.turn_unknown(s, 'lease_expired', at);
    END IF;
  ELSIF s.state = 'pending' AND at >= s.expires_at THEN
    s := idem.time_out(s, at);
  END IF;
END $$;

-- The record as changed, in its place.
CREATE FUNCTION idem.put(s idem.slots) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE idem.slots t SET
    scope = s.scope, operation = s.operation, generation = s.generation, fingerprint = s.fingerprint,
    state = s.state, fence = s.fence, token = s.token, owner = s.owner, locked_until = s.locked_until,
    dispatched = s.dispatched, lease_policy = s.lease_policy, retention = s.retention, tombstone = s.tombstone,
    recovery_point = s.recovery_point, request = s.request, response_head = s.response_head,
    response_body = s.response_body, answer = s.answer, response_status = s.response_status,
    body_kept = s.body_kept, release_basis = s.release_basis, last_error_code = s.last_error_code,
    reconcile_after = s.reconcile_after, reconcile_attempts = s.reconcile_attempts,
    upstream_reference = s.upstream_reference, created_at = s.created_at, changed_at = s.changed_at,
    completed_at = s.completed_at, expires_at = s.expires_at, tombstone_until = s.tombstone_until
  WHERE t.id = s.id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the record of % is not where it was', idem.handle(s.id) USING ERRCODE = 'IDM04';
  END IF;
  PERFORM idem.keep_standing(s);
END $$;

-- Its answer is given up, also where it lies beside the record.
CREATE FUNCTION idem.drop_answer(INOUT s idem.slots) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
  s.response_head := NULL;
  s.response_body := NULL;
  s.answer := NULL;
  s.response_status := NULL;
  s.body_kept := NULL;
END $$;

-- ---- owners ----

CREATE FUNCTION idem.is_same_attempt(s idem.slots, fence bigint, token uuid) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN s.fence <> 0 AND (fence = 0 OR fence = s.fence) AND token = s.token
  AND token <> '00000000-0000-0000-0000-000000000000';  -- Nobody's: it was forgotten on purpose.

CREATE FUNCTION idem.reply(verdict idem.verdict, s idem.slots, at timestamptz) RETURNS idem.owner_reply
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN NOT idem.is_live(s, at) THEN ROW(verdict, NULL, NULL)::idem.owner_reply
  ELSE ROW(verdict, idem.state_at(s, at),
           -- Set but without meaning while an attempt of an asynchronous request is under way.
           CASE WHEN s.state NOT IN ('in_progress', 'unknown') THEN s.expires_at END)::idem.owner_reply
END;

-- One owner's verb. `reply` says how it ended; the record is written where it changed.
CREATE FUNCTION idem.owner_step(
  verb text, s idem.slots, asked_fence bigint, asked_token uuid, at timestamptz,
  lease bigint, recovery_point text, head bytea, body bytea, reference text,
  basis idem.release_basis, error_code text, retry_in bigint, reconcile_in bigint
) RETURNS idem.owner_reply LANGUAGE plpgsql AS $$
BEGIN
  IF NOT idem.is_live(s, at) OR NOT idem.is_same_attempt(s, asked_fence, asked_token) THEN
    RETURN idem.reply('stale', s, at);
  END IF;
  IF verb IN ('dispatched', 'renew', 'advance') THEN
    IF s.state IN ('completed', 'expired') THEN RETURN idem.reply('settled', s, at); END IF;
    IF s.state <> 'in_progress' OR at >= s.locked_until THEN RETURN idem.reply('stale', s, at); END IF;
    CASE verb
      WHEN 'dispatched' THEN
        IF s.dispatched THEN RETURN idem.reply('done', s, at); END IF;
        s.dispatched := true;
      -- A renewal that arrives out of order never shortens the lease.
      WHEN 'renew' THEN s.locked_until := greatest(s.locked_until, at + idem.ms(lease));
      WHEN 'advance' THEN s.recovery_point := owner_step.recovery_point;
    END CASE;
  ELSIF verb = 'complete' THEN
    -- In progress also after its lease ran out: nobody took it. In the other states the record came from
    -- this attempt, and its own late answer is the best evidence there can be (§3).
    IF s.state IN ('completed', 'expired') THEN RETURN idem.reply('settled', s, at); END IF;
    s := idem.finish(s, head, body, at);
    IF reference <> '' THEN s.upstream_reference := reference; END IF;
  ELSIF verb = 'release' THEN
    IF s.state IN ('completed', 'expired') THEN RETURN idem.reply('settled', s, at); END IF;
    IF s.state IN ('failed_retryable', 'pending') THEN RETURN idem.reply('done', s, at); END IF;
    s := idem.release_attempt(s, basis, error_code, retry_in, at);
  ELSIF verb = 'mark_unknown' THEN
    IF s.state = 'unknown' THEN RETURN idem.reply('done', s, at); END IF;
    IF s.state <> 'in_progress' THEN RETURN idem.reply('settled', s, at); END IF;
    s := idem.turn_unknown(s, error_code, at);
    s.reconcile_after := at + idem.ms(reconcile_in);
    IF reference <> '' THEN s.upstream_reference := reference; END IF;
  ELSE
    RAISE EXCEPTION 'verb %', verb USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.put(s);
  RETURN idem.reply('done', s, at);
END $$;

-- ---- the right to execute ----

-- §19: a lease that was ended by its time is a decision about the record, too.
CREATE FUNCTION idem.note_ended_lease(before idem.slots, after idem.state, decided_by text, at timestamptz)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO idem.evidence
    (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, recorded_at)
  VALUES (before.id, before.fence, decided_by,
          CASE before.state WHEN 'in_progress' THEN 'lease_expired' ELSE 'retention_over' END, '',
          before.state, after, true, at, at)
$$;

CREATE FUNCTION idem.executes(s idem.slots, again boolean, ended_lease boolean) RETURNS idem.outcome
LANGUAGE plpgsql AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'execute';
  o.operation := s.id;
  o.fence := s.fence;
  o.attempt := s.token;
  o.recovery_point := s.recovery_point;
  o.again := again;
  o.state := 'in_progress';
  o.locked_until := s.locked_until;
  o.ended_lease := ended_lease;
  RETURN o;
END $$;

-- The answer of a live record that nobody may run now.
CREATE FUNCTION idem.answers_as(s idem.slots, ended_lease boolean, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.operation := s.id;
  o.state := idem.state_at(s, at);
  o.ended_lease := ended_lease;
  o.fence := s.fence;
  CASE o.state
    WHEN 'in_progress' THEN
      o.outcome := 'in_progress';
      o.locked_until := s.locked_until;
      o.lease_remaining := greatest(1, idem.ms_until(s.locked_until, at));
    WHEN 'unknown' THEN
      o.outcome := 'unknown';
      o.since := s.changed_at;
      o.reconcile_in := CASE WHEN s.reconcile_after IS NOT NULL
                             THEN greatest(0, idem.ms_until(s.reconcile_after, at)) END;
    WHEN 'completed' THEN
      o.outcome := 'replay';
      o.completed_at := s.completed_at;
      o.expires_at := s.expires_at;
      o.expires_in := idem.ms_until(s.expires_at, at);
      o.response_status := s.response_status;
      o.response_head := s.response_head;
      o.response_body := s.response_body;
      IF s.response_head IS NULL THEN
        SELECT a.head, a.body INTO o.response_head, o.response_body
          FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
        -- Released meanwhile, or its day is over: to be read again. Otherwise lost.
        IF NOT FOUND THEN o.outcome := 'damaged'; END IF;
      END IF;
    WHEN 'expired' THEN
      o.outcome := 'expired';
      o.completed_at := coalesce(s.completed_at, s.changed_at);
    ELSE
      o.outcome := o.state::text;          -- pending
  END CASE;
  RETURN o;
END $$;

CREATE FUNCTION idem.misuses(s idem.slots, offered bytea[], at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'key_misuse';
  o.operation := s.id;
  o.state := idem.state_at(s, at);
  o.is_other := idem.comparable(offered[1], s.fingerprint);
  o.ended_lease := false;
  RETURN o;
END $$;
