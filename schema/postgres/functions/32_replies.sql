-- Results of reserves and of owners' verbs.

CREATE OR REPLACE FUNCTION idem.reply(verdict idem.verdict, s idem.slots, at timestamptz) RETURNS idem.owner_reply
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN NOT idem.is_live(s, at) THEN ROW(verdict, NULL, NULL)::idem.owner_reply
  ELSE ROW(verdict, idem.state_at(s, at),
           -- Means nothing while an attempt of an asynchronous request runs.
           CASE WHEN s.state NOT IN ('in_progress', 'unknown') THEN s.expires_at END)::idem.owner_reply
END;

CREATE OR REPLACE FUNCTION idem.execute_outcome(s idem.slots, again boolean, ended_lease boolean) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

-- Of a record that contradicts itself: its key does not run, whichever role asks.
CREATE OR REPLACE FUNCTION idem.damaged_outcome(s idem.slots) RETURNS idem.outcome LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'damaged';
  o.operation := s.id;
  o.state := s.state;
  o.ended_lease := false;
  RETURN o;
END $$;

-- The outcome of a live record that gets no new attempt now.
CREATE OR REPLACE FUNCTION idem.state_outcome(s idem.slots, ended_lease boolean, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
      o.is_stored := s.request IS NOT NULL;
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
        -- The answer was released meanwhile, or its day is over: then the caller reads the record again. Or it is lost.
        IF NOT FOUND THEN o.outcome := 'damaged'; END IF;
      END IF;
      IF idem.has_damaged_answer(s, o.response_head, o.response_body) THEN
        o.outcome := 'damaged';
        o.response_head := NULL;
        o.response_body := NULL;
      END IF;
    WHEN 'expired' THEN
      o.outcome := 'expired';
      o.completed_at := coalesce(s.completed_at, s.changed_at);
    ELSE
      o.outcome := o.state::text;          -- pending
  END CASE;
  RETURN o;
END $$;

-- Of an accept that meets an attempt past its lease which may be resumed: only a reserve takes it up (§3).
CREATE OR REPLACE FUNCTION idem.resumable_outcome(s idem.slots, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome := idem.state_outcome(s, false, at);
BEGIN
  IF s.request IS NOT NULL THEN o.outcome := 'pending'; END IF;
  RETURN o;
END $$;

CREATE OR REPLACE FUNCTION idem.misuse_outcome(s idem.slots, offered bytea[], at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'key_misuse';
  o.operation := s.id;
  o.state := idem.state_at(s, at);
  o.is_other := idem.prove_two_requests(offered[1], s.fingerprint);
  o.ended_lease := false;
  RETURN o;
END $$;

-- Another transaction holds the record, or makes it: to all others it is in progress. The lease is the committed one,
-- or the caller's own where no record is committed.
CREATE OR REPLACE FUNCTION idem.held_outcome(s idem.slots, r idem.reservation, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'in_progress';
  o.operation := coalesce(s.id, r.id);   -- s may have another name of the key.
  o.fence := coalesce(s.fence, 0);
  o.state := 'in_progress';
  o.locked_until := greatest(coalesce(s.locked_until, at + idem.ms(r.lease)), at + interval '1 ms');
  o.lease_remaining := idem.ms_until(o.locked_until, at);
  o.again := true;                       -- With in_progress: the record is held, and its state not known.
  RETURN o;
END $$;

-- The outcome of a record that idem.is_answered().
CREATE OR REPLACE FUNCTION idem.answered_outcome(s idem.slots, r idem.reservation, offered bytea[], accepts boolean,
                                      at timestamptz) RETURNS idem.outcome LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  IF NOT idem.matches(offered, s.fingerprint) THEN
    -- If the fingerprint is damaged, this may be the first request's own retry.
    IF idem.state_at(s, at) = 'completed' THEN
      o := idem.state_outcome(s, false, at);
      IF o.outcome = 'damaged' THEN RETURN o; END IF;
    END IF;
    o := idem.misuse_outcome(s, offered, at);
    IF s.request IS NOT NULL AND idem.has_damaged_request(s) THEN o.outcome := 'damaged'; END IF;
    RETURN o;
  END IF;
  -- Only the token proves that the attempt is the caller's (§4).
  IF NOT accepts AND s.state = 'in_progress' AND idem.is_same_attempt(s, 0, r.token) THEN
    RETURN idem.execute_outcome(s, false, false);
  END IF;
  RETURN idem.state_outcome(s, false, at);
END $$;
