-- Encrypted answers and requests (docs/encryption.md): PostgreSQL keeps them, and has none of their keys.

-- True for the head of an answer that a program encrypted: its only field is `idem-sealed`.
CREATE OR REPLACE FUNCTION idem.is_sealed(head bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN coalesce(substr(head, 5, 15) = E'\\x0b000000'::bytea || 'idem-sealed'::bytea, false);

CREATE OR REPLACE FUNCTION idem.is_sealed_request(request bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN coalesce(substr(request, 1, 11) = 'idem-sealed'::bytea, false);

-- Another form of the stored answer, or of the stored request: encrypted, or under another key. `seen`: the digest of
-- what the caller read. Verdicts: done, not_found, wrong_state, wrong_fence, superseded.
CREATE OR REPLACE FUNCTION idem.reseal(id uuid, fence bigint, seen bytea, head bytea, body bytea, request bytea)
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  old_head bytea;
  old_body bytea;
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.limit_lock_wait();
  SELECT * INTO s FROM idem.slots t WHERE t.id = reseal.id FOR UPDATE;
  PERFORM idem.must_not_contradict_itself(s);
  at := idem.now();
  verdict := 'not_found';
  IF NOT idem.is_live(s, at) THEN RETURN NEXT; RETURN; END IF;
  state := idem.state_at(s, at);
  IF reseal.request IS NOT NULL THEN
    verdict := CASE
      WHEN s.state NOT IN ('pending', 'unknown') OR s.request IS NULL THEN 'wrong_state'
      WHEN idem.has_damaged_request(s) OR sha256(s.request) <> seen THEN 'superseded'
      ELSE 'done'
    END;
    IF verdict = 'done' THEN
      UPDATE idem.slots t SET request = reseal.request,
        checksum = idem.checksum(t.id, t.fingerprint, '', reseal.request) WHERE t.id = s.id;
    END IF;
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT coalesce(s.response_head, a.head), coalesce(s.response_body, a.body) INTO old_head, old_body
    FROM (SELECT) one LEFT JOIN idem.answers a ON a.expires_at = s.expires_at AND a.number = s.answer;
  verdict := CASE
    WHEN state <> 'completed' OR old_head IS NULL OR old_body IS NULL THEN 'wrong_state'
    WHEN reseal.fence = 0 OR reseal.fence <> s.fence THEN 'wrong_fence'
    WHEN idem.has_damaged_answer(s, old_head, old_body)
         OR sha256(idem.length_framed(old_head) || old_body) <> seen
         OR idem.status_of(old_head) <> idem.status_of(head) OR idem.has_body(old_head) <> idem.has_body(head)
      THEN 'superseded'
    ELSE 'done'
  END;
  IF verdict = 'done' THEN
    IF s.answer IS NOT NULL THEN
      UPDATE idem.answers a SET head = reseal.head, body = reseal.body
        WHERE a.expires_at = s.expires_at AND a.number = s.answer;
    ELSIF NOT idem.is_small(reseal.head, reseal.body) THEN
      s.answer := nextval('idem.answer_numbers');
      INSERT INTO idem.answers VALUES (s.expires_at, s.answer, reseal.head, reseal.body);
    END IF;
    UPDATE idem.slots t SET answer = s.answer,
      response_head = CASE WHEN s.answer IS NULL THEN reseal.head END,
      response_body = CASE WHEN s.answer IS NULL THEN reseal.body END,
      checksum = idem.checksum(t.id, t.fingerprint, reseal.head, reseal.body) WHERE t.id = s.id;
  END IF;
  RETURN NEXT;
END $$;
