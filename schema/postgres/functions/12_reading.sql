-- How a record reads at a moment.

-- The handle as it travels: 32 lower-case hex digits.
CREATE OR REPLACE FUNCTION idem.handle(id uuid) RETURNS text LANGUAGE sql IMMUTABLE RETURN replace(id::text, '-', '');

-- The token of no attempt.
CREATE OR REPLACE FUNCTION idem.nil_uuid() RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN '00000000-0000-0000-0000-000000000000'::uuid;

-- The state at a moment: a completed record past its expiry reads as expired.
CREATE OR REPLACE FUNCTION idem.state_at(s idem.slots, at timestamptz) RETURNS idem.state LANGUAGE sql IMMUTABLE
RETURN CASE WHEN s.state = 'completed' AND at >= s.expires_at THEN 'expired' ELSE s.state END;

-- False for a row that counts as no record any more.
CREATE OR REPLACE FUNCTION idem.is_live(s idem.slots, at timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN s.id IS NULL THEN false
  WHEN s.state = 'failed_retryable' THEN at < s.expires_at
  WHEN s.state IN ('completed', 'expired') THEN at < s.tombstone_until
  ELSE true
END;

-- True when one of the offered fingerprints is the record's. They are keyed digests, so the time of a comparison
-- reveals nothing without the key.
CREATE OR REPLACE FUNCTION idem.matches(offered bytea[], stored bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN stored = ANY (offered);

-- True when two unequal fingerprints prove two requests: version 1, one rule, bodies whose values Idem could read as one
-- kind, and other values. Behind the version: 8 bytes of the rule, 1 of the kind (0: unread), 7 of the values.
CREATE OR REPLACE FUNCTION idem.prove_two_requests(a bytea, b bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN substr(a, 1, 4) = E'\\x00000001'::bytea AND substr(a, 1, 13) = substr(b, 1, 13)
   AND substr(a, 13, 1) IN (E'\\x01'::bytea, E'\\x02'::bytea, E'\\x03'::bytea) AND substr(a, 14, 7) <> substr(b, 14, 7);

CREATE OR REPLACE FUNCTION idem.is_same_attempt(s idem.slots, fence bigint, token uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN s.fence <> 0 AND (fence = 0 OR fence = s.fence) AND token = s.token
  AND token <> '00000000-0000-0000-0000-000000000000';  -- idem.nil_uuid(): forgotten on purpose.

-- True when the record itself answers a reserve, and nothing has to be written.
CREATE OR REPLACE FUNCTION idem.is_answered(s idem.slots, offered bytea[], at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN idem.is_live(s, at) AND (
  NOT idem.matches(offered, s.fingerprint)
  OR CASE s.state
       WHEN 'in_progress' THEN at < s.locked_until
       WHEN 'pending' THEN at < s.expires_at
       WHEN 'failed_retryable' THEN false
       ELSE true
     END);

CREATE OR REPLACE FUNCTION idem.fingerprints(joined bytea) RETURNS bytea[] LANGUAGE sql IMMUTABLE
RETURN (SELECT array_agg(substr(joined, 36 * n + 1, 36) ORDER BY n) FROM generate_series(0, length(joined) / 36 - 1) n);

-- A value that damage made NULL differs, too. A record without a checksum is older than the checksums.
CREATE OR REPLACE FUNCTION idem.has_damaged_request(s idem.slots) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN s.checksum IS NOT NULL AND s.response_status IS NULL
  AND s.checksum IS DISTINCT FROM idem.checksum(s.id, s.fingerprint, '', s.request);

CREATE OR REPLACE FUNCTION idem.has_damaged_answer(s idem.slots, head bytea, body bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN s.checksum IS NOT NULL AND CASE
  WHEN s.checksum IS DISTINCT FROM idem.checksum(s.id, s.fingerprint, head, body) THEN true
  ELSE s.response_status IS DISTINCT FROM idem.status_of(head) OR s.body_kept IS DISTINCT FROM idem.has_body(head)
END;

-- True for a record whose members no function of Idem leaves together: then one of them is damaged, and the record
-- answers nothing and runs nothing, whatever its state says. It needs no checksum, because a record says the same thing
-- more than once: its times follow from one another, and only an ended attempt has an answer, a basis, or its times.
-- Differences of times are immutable, sums are not: with sums PostgreSQL would not inline this.
CREATE OR REPLACE FUNCTION idem.contradicts_itself(s idem.slots) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN s.id IS NULL THEN false
  WHEN s.state IN ('completed', 'expired') THEN (
    s.expires_at - s.completed_at = idem.ms(s.retention) AND s.tombstone_until - s.expires_at = idem.ms(s.tombstone)
    AND CASE s.state
          WHEN 'completed' THEN s.changed_at = s.completed_at
          ELSE s.changed_at = s.expires_at
               AND num_nonnulls(s.response_status, s.response_head, s.response_body, s.answer, s.body_kept,
                                s.checksum) = 0
        END) IS NOT TRUE
  WHEN num_nonnulls(s.completed_at, s.tombstone_until, s.response_status, s.response_head, s.response_body, s.answer,
                    s.body_kept) > 0
       OR s.checksum IS NOT NULL AND s.request IS NULL THEN true
  WHEN s.state = 'failed_retryable' THEN s.release_basis IS NULL OR s.expires_at IS NULL OR s.request IS NOT NULL
  WHEN s.state = 'pending' THEN s.expires_at IS NULL OR s.request IS NULL
  ELSE s.release_basis IS NOT NULL
END;

-- True if it is proven that a running attempt has sent nothing.
CREATE OR REPLACE FUNCTION idem.has_sent_nothing(s idem.slots) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN NOT s.dispatched AND coalesce(s.unsent_token = s.token, false);

-- The record at a moment: NULL where it counts as none; a completed one past its expiry as the reaper will leave it.
-- Without a large answer; idem.find() adds that. One that contradicts itself reads as completed, with
-- the status 0 and without an answer.
CREATE OR REPLACE FUNCTION idem.view_of(s idem.slots, at timestamptz) RETURNS idem.slots LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.contradicts_itself(s) THEN
    s.state := 'completed';
    s.response_head := NULL;
    s.response_body := NULL;
    s.answer := NULL;
    s.response_status := 0;
    s.checksum := NULL;
    RETURN s;
  END IF;
  IF NOT idem.is_live(s, at) THEN RETURN NULL; END IF;
  IF idem.state_at(s, at) <> s.state THEN
    s.state := 'expired';
    s.changed_at := s.expires_at;
    s.response_head := NULL;
    s.response_body := NULL;
    s.answer := NULL;
    s.response_status := NULL;
    s.body_kept := NULL;
    s.checksum := NULL;
  END IF;
  RETURN s;
END $$;
