-- The verbs by which owners change and end their attempts (§3, §4).

-- One owner's verb on `s`, which is locked. Writes the record if it changed.
CREATE OR REPLACE FUNCTION idem.owner_step(
  verb text, s idem.slots, asked_fence bigint, asked_token uuid, at timestamptz,
  lease bigint, recovery_point text, head bytea, body bytea, reference text,
  basis idem.release_basis, error_code text, retry_in bigint, reconcile_in bigint
) RETURNS idem.owner_reply LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked text COLLATE "C" := verb;
BEGIN
  IF idem.is_same_attempt(s, asked_fence, asked_token) AND idem.contradicts_itself(s) THEN
    -- The attempt's own answer is the best evidence, but it does not take the place of one that may be stored.
    IF asked <> 'complete' OR num_nonnulls(s.response_status, s.response_head, s.answer) > 0 THEN
      PERFORM idem.must_not_contradict_itself(s);
    END IF;
    s.state := 'in_progress';
  END IF;
  IF NOT idem.is_live(s, at) OR NOT idem.is_same_attempt(s, asked_fence, asked_token) THEN
    RETURN idem.reply('stale', s, at);
  END IF;
  IF asked IN ('dispatched', 'renew', 'advance') THEN
    IF s.state IN ('completed', 'expired') THEN RETURN idem.reply('settled', s, at); END IF;
    IF s.state <> 'in_progress' OR at >= s.locked_until THEN RETURN idem.reply('stale', s, at); END IF;
    CASE asked
      WHEN 'dispatched' THEN
        IF s.dispatched THEN RETURN idem.reply('done', s, at); END IF;
        s.dispatched := true;
        s.unsent_token := NULL;
      -- A renewal that arrives late never shortens the lease.
      WHEN 'renew' THEN s.locked_until := greatest(s.locked_until, at + idem.ms(lease));
      WHEN 'advance' THEN s.recovery_point := owner_step.recovery_point;
    END CASE;
  ELSIF asked = 'complete' THEN
    -- In progress also after the end of the lease: no other attempt has begun. Other states came from this attempt,
    -- and its own late answer is the best evidence (§3).
    IF s.state IN ('completed', 'expired') THEN RETURN idem.reply('settled', s, at); END IF;
    s := idem.finish(s, head, body, at);
    IF reference <> '' COLLATE "C" THEN s.upstream_reference := reference; END IF;
  ELSIF asked = 'release' THEN
    IF s.state IN ('completed', 'expired') THEN RETURN idem.reply('settled', s, at); END IF;
    IF s.state IN ('failed_retryable', 'pending') THEN RETURN idem.reply('done', s, at); END IF;
    s := idem.release_attempt(s, basis, error_code, retry_in, at);
  ELSIF asked = 'mark_unknown' THEN
    IF s.state = 'unknown' THEN RETURN idem.reply('done', s, at); END IF;
    IF s.state <> 'in_progress' THEN RETURN idem.reply('settled', s, at); END IF;
    s := idem.turn_unknown(s, error_code, at);
    s.reconcile_after := at + idem.ms(reconcile_in);
    IF reference <> '' COLLATE "C" THEN s.upstream_reference := reference; END IF;
  ELSE
    RAISE EXCEPTION '% is not an owner''s verb', verb USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.update_record(s);
  RETURN idem.reply('done', s, at);
END $$;

-- One owner's verb on a record that another transaction may hold: `patient` as in idem.reserve_one(). Returns NULL if
-- another transaction holds the record.
CREATE OR REPLACE FUNCTION idem.owner_one(
  verb text, id uuid, fence bigint, token uuid, lease bigint, recovery_point text, head bytea, body bytea,
  reference text, basis idem.release_basis, error_code text, retry_in bigint, reconcile_in bigint, patient boolean
) RETURNS idem.owner_reply LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
