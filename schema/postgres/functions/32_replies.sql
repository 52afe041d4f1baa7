-- What callers are answered with.

CREATE OR REPLACE FUNCTION idem.reply(verdict idem.verdict, s idem.slots, at timestamptz) RETURNS idem.owner_reply
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN NOT idem.is_live(s, at) THEN ROW(verdict, NULL, NULL)::idem.owner_reply
  ELSE ROW(verdict, idem.state_at(s, at),
           -- Set but without meaning while an attempt of an asynchronous request is under way.
           CASE WHEN s.state NOT IN ('in_progress', 'unknown') THEN s.expires_at END)::idem.owner_reply
END;

CREATE OR REPLACE FUNCTION idem.executes(s idem.slots, again boolean, ended_lease boolean) RETURNS idem.outcome
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

-- The answer of a live record that nobody may run now.
CREATE OR REPLACE FUNCTION idem.answers_as(s idem.slots, ended_lease boolean, at timestamptz) RETURNS idem.outcome
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
        -- Released meanwhile, or its day is over: to be read again. Otherwise lost.
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

CREATE OR REPLACE FUNCTION idem.misuses(s idem.slots, offered bytea[], at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

-- Somebody's transaction holds the record, or makes it: as far as anybody can see, that is in progress.
-- The lease is the one that is committed; of a record that is only being made, the asker's own.
CREATE OR REPLACE FUNCTION idem.is_held(s idem.slots, r idem.reservation, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'in_progress';
  o.operation := coalesce(s.id, r.id);   -- perhaps under another name
  o.fence := coalesce(s.fence, 0);
  o.state := 'in_progress';
  o.locked_until := greatest(coalesce(s.locked_until, at + idem.ms(r.lease)), at + interval '1 ms');
  o.lease_remaining := idem.ms_until(o.locked_until, at);
  o.again := true;                       -- in_progress: not known, but held
  RETURN o;
END $$;

-- The answer in a record that has one.
CREATE OR REPLACE FUNCTION idem.read_answer(s idem.slots, r idem.reservation, offered bytea[], accepts boolean, at timestamptz)
RETURNS idem.outcome LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o idem.outcome;
BEGIN
  IF NOT idem.matches(offered, s.fingerprint) THEN
    -- Where the fingerprint is damaged, this may be the first request's own retry.
    IF idem.state_at(s, at) = 'completed' THEN
      o := idem.answers_as(s, false, at);
      IF o.outcome = 'damaged' THEN RETURN o; END IF;
    END IF;
    o := idem.misuses(s, offered, at);
    IF s.request IS NOT NULL AND idem.has_damaged_request(s) THEN o.outcome := 'damaged'; END IF;
    RETURN o;
  END IF;
  -- Only the token proves that the reservation is the asker's (§4).
  IF NOT accepts AND s.state = 'in_progress' AND idem.is_same_attempt(s, 0, r.token) THEN
    RETURN idem.executes(s, false, false);
  END IF;
  RETURN idem.answers_as(s, false, at);
END $$;
