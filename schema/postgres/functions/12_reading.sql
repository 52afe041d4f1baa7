-- How a record reads at a moment.

-- The handle as it travels: 32 lower-case hex digits.
CREATE OR REPLACE FUNCTION idem.handle(id uuid) RETURNS text LANGUAGE sql IMMUTABLE RETURN replace(id::text, '-', '');

CREATE OR REPLACE FUNCTION idem.nobody() RETURNS uuid LANGUAGE sql IMMUTABLE RETURN '00000000-0000-0000-0000-000000000000'::uuid;

-- The state as it reads at a moment: completed past its expiry reads as expired.
CREATE OR REPLACE FUNCTION idem.state_at(s idem.slots, at timestamptz) RETURNS idem.state LANGUAGE sql IMMUTABLE
RETURN CASE WHEN s.state = 'completed' AND at >= s.expires_at THEN 'expired' ELSE s.state END;

-- False for what counts as no record though it may still lie there.
CREATE OR REPLACE FUNCTION idem.is_live(s idem.slots, at timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN s.id IS NULL THEN false
  WHEN s.state = 'failed_retryable' THEN at < s.expires_at
  WHEN s.state IN ('completed', 'expired') THEN at < s.tombstone_until
  ELSE true
END;

-- True when one of the fingerprints that were offered is the record's. They are keyed digests, so the
-- time that a comparison takes tells nothing to who does not have the key.
CREATE OR REPLACE FUNCTION idem.matches(offered bytea[], stored bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN stored = ANY (offered);

-- Only of two fingerprints that were made by the same rules does a difference prove another request:
-- from version 3 on a digest begins with the name of its rule.
CREATE OR REPLACE FUNCTION idem.comparable(a bytea, b bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN substr(a, 1, 4) = substr(b, 1, 4)
   AND (substr(a, 1, 4) < '\x00000003' OR substr(a, 1, 12) = substr(b, 1, 12));

CREATE OR REPLACE FUNCTION idem.is_same_attempt(s idem.slots, fence bigint, token uuid) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN s.fence <> 0 AND (fence = 0 OR fence = s.fence) AND token = s.token
  AND token <> '00000000-0000-0000-0000-000000000000';  -- Nobody's: it was forgotten on purpose.

-- True when the answer is in the record as it lies, and nothing has to be written for it.
CREATE OR REPLACE FUNCTION idem.is_answered(s idem.slots, offered bytea[], at timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
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

-- A value that damage has made NULL differs, too. What has no checksum was stored before there were any.
CREATE OR REPLACE FUNCTION idem.has_damaged_request(s idem.slots) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN s.checksum IS NOT NULL AND s.response_status IS NULL
  AND s.checksum IS DISTINCT FROM idem.checksum(s.id, s.fingerprint, '', s.request);

CREATE OR REPLACE FUNCTION idem.has_damaged_answer(s idem.slots, head bytea, body bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN s.checksum IS NOT NULL AND CASE
  WHEN s.checksum IS DISTINCT FROM idem.checksum(s.id, s.fingerprint, head, body) THEN true
  ELSE s.response_status IS DISTINCT FROM idem.status_of(head) OR s.body_kept IS DISTINCT FROM idem.has_body(head)
END;

-- Records as they read now: what counts as none is left out, a completed one past its expiry reads as the
-- reaper will leave it. Without answers; idem.find() has them.
CREATE OR REPLACE FUNCTION idem.view_of(s idem.slots, at timestamptz) RETURNS idem.slots LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
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
