-- Records of another store, for a store that is becoming its copy (idem store copy).

-- Makes the record of `of` what it is in the other store, or removes it if `record` is NULL. `record`: the columns of
-- idem.slots but for those of its request and its answer. Appends `lines` to the log of decisions if that has `behind`
-- lines about the record; otherwise nothing is changed. No fence up to `fence_floor` is granted any more. A copy that is
-- not whole yet is used by nobody, and its records are compared before it is: so the commit of a record need not wait
-- for the disk. A call without record and lines does, and so everything before it is on the disk behind it.
CREATE OR REPLACE FUNCTION idem.put_record(of uuid, record jsonb, request bytea, head bytea, body bytea, behind bigint,
                                           lines jsonb, fence_floor bigint, generation bigint)
RETURNS TABLE (put boolean, evidence bigint) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
BEGIN
  PERFORM idem.lock_generation(generation);
  IF record IS NULL AND lines = '[]' THEN PERFORM idem.be_durable(); END IF;
  SELECT * INTO s FROM idem.slots t WHERE t.id = of FOR UPDATE;
  SELECT count(*) INTO evidence FROM idem.evidence e WHERE e.id = of;
  put := evidence = behind;
  IF NOT put THEN RETURN NEXT; RETURN; END IF;
  -- In any case, because what writes nothing waits for nothing.
  PERFORM setval('idem.fences', greatest(f.last_value, fence_floor, 1)) FROM idem.fences f;
  IF s.id IS NOT NULL THEN
    DELETE FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
    DELETE FROM idem.slots t WHERE t.id = of;
    DELETE FROM idem.parked_records t WHERE t.id = of;
    PERFORM idem.add_usage(s.scope, -idem.active_of(s), -s.charged);
  END IF;
  IF record IS NOT NULL THEN
    s := jsonb_populate_record(NULL::idem.slots, record);
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
    CASE s.state
      WHEN 'in_progress' THEN PERFORM idem.schedule_lease_check(s.id, s.locked_until);
      WHEN 'pending' THEN PERFORM idem.schedule_lease_check(s.id, s.expires_at);
      WHEN 'expired' THEN PERFORM idem.schedule_expiry_check(s.id, s.tombstone_until);
      WHEN 'unknown' THEN NULL;
      ELSE PERFORM idem.schedule_expiry_check(s.id, s.expires_at);
    END CASE;
  END IF;
  PERFORM idem.append_evidence(of, l.fence, l.source, l.evidence, l.reason, l.before, l.after, l.applied,
                               l.observed_at, l.recorded_at)
    FROM ROWS FROM (jsonb_to_recordset(lines) AS (fence bigint, source text, evidence text, reason text,
                                                  before idem.state, after idem.state, applied boolean,
                                                  observed_at timestamptz, recorded_at timestamptz))
      WITH ORDINALITY AS l(fence, source, evidence, reason, before, after, applied, observed_at, recorded_at, number)
    ORDER BY l.number;
  evidence := evidence + jsonb_array_length(lines);
  RETURN NEXT;
END $$;
