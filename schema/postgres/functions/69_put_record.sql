-- Records of another store, for a store that is becoming its copy (idem store copy).

-- When sweeper or reaper looks at a record that is put as it stands.
CREATE OR REPLACE FUNCTION idem.schedule_next_check(s idem.slots) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CASE s.state
    WHEN 'in_progress' THEN PERFORM idem.schedule_lease_check(s.id, s.locked_until);
    WHEN 'pending' THEN PERFORM idem.schedule_lease_check(s.id, s.expires_at);
    WHEN 'expired' THEN PERFORM idem.schedule_expiry_check(s.id, s.tombstone_until);
    WHEN 'unknown' THEN NULL;
    ELSE PERFORM idem.schedule_expiry_check(s.id, s.expires_at);
  END CASE;
END $$;

-- Makes the record of `of` what it is in the other store, or removes it if `record` is NULL. `record`: the columns of
-- idem.slots but for those of its request and its answer. Appends `lines` to the log of decisions if that has `behind`
-- lines about the record; otherwise nothing is changed. No fence up to `fence_floor` is granted any more. A copy that is
-- not whole yet is used by nobody, and its records are compared before it is: so the commit of a record need not wait
-- for the disk. A call without record and lines does, and so everything before it is on the disk behind it. `ends`: only
-- if the attempt of `record` still runs as that says, under this token, which `record` has no more. The caller holds the
-- generation's lock.
CREATE OR REPLACE FUNCTION idem.put_record(of uuid, record jsonb, request bytea, head bytea, body bytea, behind bigint,
                                           lines jsonb, fence_floor bigint, ends uuid,
                                           OUT put boolean, OUT evidence bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  r idem.slots := jsonb_populate_record(NULL::idem.slots, record);
  is_durable boolean := record IS NULL AND lines = '[]' OR ends IS NOT NULL;
BEGIN
  IF is_durable THEN PERFORM idem.be_durable(); END IF;
  IF ends IS NULL THEN
    SELECT * INTO s FROM idem.slots t WHERE t.id = of FOR UPDATE;
  ELSE
    SELECT * INTO s FROM idem.slots t WHERE t.id = of FOR UPDATE SKIP LOCKED;
  END IF;
  SELECT count(*) INTO evidence FROM idem.evidence e WHERE e.id = of;
  put := evidence = behind AND (ends IS NULL OR coalesce(
    s.state = 'in_progress' AND s.token = ends AND s.fence = r.fence AND s.locked_until = r.locked_until
      AND s.recovery_point = r.recovery_point, false));
  IF NOT put THEN RETURN; END IF;
  -- In any case where the disk is waited for, because what writes nothing waits for nothing.
  IF is_durable OR (SELECT f.last_value < fence_floor FROM idem.fences f) THEN
    PERFORM pg_advisory_xact_lock(1229210957, 5);
    PERFORM setval('idem.fences', greatest(f.last_value, fence_floor, 1)) FROM idem.fences f;
  END IF;
  IF s.id IS NOT NULL THEN
    DELETE FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
    DELETE FROM idem.slots t WHERE t.id = of;
    DELETE FROM idem.parked_records t WHERE t.id = of;
    PERFORM idem.add_usage(s.scope, -idem.active_of(s), -s.charged);
  END IF;
  IF record IS NOT NULL THEN
    s := r;
    IF head IS NOT NULL THEN
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
    ELSIF request IS NOT NULL THEN
      s.request := request;
      s.checksum := idem.checksum(s.id, s.fingerprint, '', request);
    END IF;
    IF s.state = 'in_progress' AND NOT s.dispatched THEN s.unsent_token := s.token; END IF;
    PERFORM idem.must_not_contradict_itself(s);
    INSERT INTO idem.slots SELECT s.*;
    PERFORM idem.add_usage(s.scope, idem.active_of(s), s.charged);
    PERFORM idem.keep_parked(s);
    PERFORM idem.schedule_next_check(s);
  END IF;
  IF lines = '[]' THEN RETURN; END IF;
  PERFORM idem.append_evidence(of, l.fence, l.source, l.evidence, l.reason, l.before, l.after, l.applied,
                               l.observed_at, l.recorded_at)
    FROM ROWS FROM (jsonb_to_recordset(lines) AS (fence bigint, source text, evidence text, reason text,
                                                  before idem.state, after idem.state, applied boolean,
                                                  observed_at timestamptz, recorded_at timestamptz))
      WITH ORDINALITY AS l(fence, source, evidence, reason, before, after, applied, observed_at, recorded_at, number)
    ORDER BY l.number;
  evidence := evidence + jsonb_array_length(lines);
END $$;

-- Up to 256 of them, each of another record; `ends` is for a call with one. A row of the result is one call's.
CREATE OR REPLACE FUNCTION idem.put_records(of uuid[], records text[], requests bytea[], heads bytea[], bodies bytea[],
                                            behinds bigint[], lines text[], fence_floors bigint[], generation bigint,
                                            ends uuid)
RETURNS TABLE (number integer, put boolean, evidence bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.lock_generation(generation);
  FOR n IN 1..cardinality(of) LOOP
    number := n;
    SELECT d.put, d.evidence INTO put, evidence
      FROM idem.put_record(of[n], records[n]::jsonb, requests[n], heads[n], bodies[n], behinds[n], lines[n]::jsonb,
                           fence_floors[n], ends) d;
    RETURN NEXT;
  END LOOP;
END $$;
