-- Decisions by evidence and by an operator (§3, §19). Each adds a line to the evidence log, also a refused one.

-- Verdicts: done, not_found, wrong_state, wrong_fence, missing_response, too_early, by_evidence. `denies`: the answer
-- says that the work was refused. Evidence that an attempt ran counts also where it does not name the attempt, and
-- holds a record that would run again. Evidence that it was refused holds none, and does not complete one that is held.
CREATE OR REPLACE FUNCTION idem.resolve(id uuid, outcome idem.state, fence bigint, head bytea, body bytea, source text,
  evidence text, reason text, observed_at timestamptz, grace bigint, denies boolean DEFAULT false)
RETURNS TABLE (verdict text, state idem.state, is_contradicted boolean) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
  is_positive boolean := outcome = 'completed';
BEGIN
  IF outcome NOT IN ('completed', 'failed_retryable') THEN
    RAISE EXCEPTION 'a record cannot be resolved as %', outcome USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.be_durable();
  PERFORM idem.limit_lock_wait();
  SELECT * INTO s FROM idem.slots t WHERE t.id = resolve.id FOR UPDATE;
  PERFORM idem.must_not_contradict_itself(s);
  at := idem.now();
  verdict := 'not_found';
  is_contradicted := false;
  IF idem.is_live(s, at) THEN
    before := idem.state_at(s, at);
    verdict := CASE
      WHEN s.state IN ('in_progress', 'completed', 'expired') OR s.state <> 'unknown' AND NOT is_positive
        THEN 'wrong_state'
      -- A pending record that never ran has no attempt.
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
        is_contradicted := s.contested;
      ELSE
        s := idem.release_attempt(s, 'proven', 'resolved', 0, at);
      END IF;
      PERFORM idem.update_record(s);
    -- Refused work holds no record: it had no effect that a second run could repeat.
    ELSIF is_positive AND NOT denies AND s.fence <> 0 AND resolve.fence IN (0, s.fence) AND NOT s.contested
          AND (verdict IN ('missing_response', 'wrong_fence') OR verdict = 'wrong_state'
               AND (s.state = 'in_progress' OR before = 'completed' AND s.response_status >= 500)) THEN
      s.contested := true;
      IF s.state IN ('failed_retryable', 'pending') THEN
        -- The record would run again, and its work may have been done.
        IF s.request IS NULL THEN s.expires_at := NULL; END IF;
        s := idem.turn_unknown(s, 'contested', at);
        s.reconcile_after := at;
        PERFORM idem.update_record(s);
      ELSE
        UPDATE idem.slots t SET contested = true WHERE t.id = s.id;  -- The rows beside it stay as they are.
      END IF;
    -- idem.finish() compares this with the attempt's own answer.
    ELSIF is_positive AND denies AND s.fence <> 0 AND resolve.fence IN (0, s.fence)
          AND s.state IN ('in_progress', 'unknown') AND NOT idem.is_denied(s) THEN
      UPDATE idem.slots t SET last_error_code = 'event_said_failed' WHERE t.id = s.id;
    END IF;
    state := idem.state_at(s, at);
  END IF;
  PERFORM idem.append_evidence(resolve.id, resolve.fence, source, evidence, reason, before, state,
                               verdict = 'done', resolve.observed_at, at);
  RETURN NEXT;
END $$;

-- An operator's release of a stored 5xx, unless evidence gave that answer: then it is known that the work ran.
CREATE OR REPLACE FUNCTION idem.cache_bust(id uuid, fence bigint, reason text, source text DEFAULT 'operator')
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.limit_lock_wait();
  SELECT * INTO s FROM idem.slots t WHERE t.id = cache_bust.id FOR UPDATE;
  PERFORM idem.must_not_contradict_itself(s);
  at := idem.now();
  verdict := 'not_found';
  IF idem.is_live(s, at) THEN
    before := idem.state_at(s, at);
    verdict := CASE
      WHEN before <> 'completed' OR s.response_status < 500 THEN 'wrong_state'
      WHEN cache_bust.fence = 0 OR cache_bust.fence <> s.fence THEN 'wrong_fence'
      -- A damaged line may be the one that says so.
      WHEN s.contested OR idem.has_damaged_evidence(cache_bust.id) OR EXISTS (SELECT FROM idem.evidence e
             WHERE e.id = cache_bust.id AND e.applied
                   AND e.after_state = 'completed' AND e.fence = cache_bust.fence) THEN 'by_evidence'
      ELSE 'done'
    END;
    IF verdict = 'done' THEN
      s := idem.drop_answer(s);
      s := idem.release_attempt(s, 'declared', 'cache_bust', 0, at);
      s.completed_at := NULL;
      s.tombstone_until := NULL;
      -- Without the token a repeated complete cannot bring the answer back; evidence may still name the fence.
      s.token := idem.nil_uuid();
      PERFORM idem.update_record(s);
    END IF;
    state := idem.state_at(s, at);
  END IF;
  PERFORM idem.append_evidence(cache_bust.id, cache_bust.fence, source, 'cache-bust', reason, before, state,
                               verdict = 'done', at, at);
  RETURN NEXT;
END $$;

-- Plans the next question. Of several callers that read the same plan, one succeeds. Verdicts: done, not_found,
-- wrong_state, wrong_fence, superseded. Without a source it adds no line to the log. The caller sets whether the commit
-- of a mere plan waits for the disk: a plan that is forgotten is made again.
CREATE OR REPLACE FUNCTION idem.reschedule(id uuid, fence bigint, attempts integer, reconcile_in bigint, source text,
  evidence text, reason text, observed_at timestamptz)
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
BEGIN
  IF source <> '' COLLATE "C" OR reconcile_in IS NULL THEN PERFORM idem.be_durable(); END IF;
  PERFORM idem.limit_lock_wait();
  SELECT * INTO s FROM idem.slots t WHERE t.id = reschedule.id FOR UPDATE;
  PERFORM idem.must_not_contradict_itself(s);
  at := idem.now();
  verdict := 'not_found';
  IF idem.is_live(s, at) THEN
    before := idem.state_at(s, at);
    verdict := CASE
      WHEN s.state <> 'unknown' THEN 'wrong_state'
      WHEN reschedule.fence = 0 OR reschedule.fence <> s.fence THEN 'wrong_fence'
      WHEN reschedule.attempts <> s.reconcile_attempts THEN 'superseded'
      ELSE 'done'
    END;
    IF verdict = 'done' THEN
      s.reconcile_attempts := s.reconcile_attempts + 1;
      s.reconcile_after := at + idem.ms(reconcile_in);
      PERFORM idem.update_record(s);
    END IF;
    state := idem.state_at(s, at);
  END IF;
  IF source <> '' COLLATE "C" THEN
    PERFORM idem.append_evidence(reschedule.id, reschedule.fence, source, evidence, reason, before, state, false,
                                 reschedule.observed_at, at);
  END IF;
  RETURN NEXT;
END $$;
