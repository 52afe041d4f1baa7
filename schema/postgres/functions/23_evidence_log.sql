-- The log of decisions.

CREATE OR REPLACE FUNCTION idem.evidence_is_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'idem.evidence is append-only' USING ERRCODE = 'IDM09';
END $$;

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON idem.evidence
  EXECUTE FUNCTION idem.evidence_is_append_only();

-- Of a line. It shows damage; this is not a signature. Kept events lie in these lines with their answers.
CREATE OR REPLACE FUNCTION idem.evidence_checksum(id uuid, fence bigint, source text, evidence text, reason text,
  before_state idem.state, after_state idem.state, applied boolean, observed_at timestamptz, recorded_at timestamptz)
RETURNS bytea LANGUAGE sql STABLE
RETURN substr(sha256(uuid_send(id) || int8send(fence)
  || idem.length_framed(convert_to(source, 'UTF8')) || idem.length_framed(convert_to(evidence, 'UTF8'))
  || idem.length_framed(convert_to(reason, 'UTF8')) || idem.length_framed(convert_to(
       concat_ws(' ', coalesce(before_state::text, '-'), coalesce(after_state::text, '-'), applied), 'UTF8'))
  || timestamptz_send(observed_at) || timestamptz_send(recorded_at)), 1, 8);

-- The end of a lease, or of a pending request, by time is a decision about the record, too (§19).
CREATE OR REPLACE FUNCTION idem.note_ended_lease(before idem.slots, after idem.state, decided_by text, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.append_evidence(before.id, before.fence, decided_by,
    CASE before.state WHEN 'in_progress' THEN 'lease_expired' ELSE 'retention_over' END, '',
    before.state, after, true, at, at);
END $$;

CREATE OR REPLACE FUNCTION idem.append_evidence(id uuid, fence bigint, source text, evidence text, reason text,
  before_state idem.state, after_state idem.state, applied boolean, observed_at timestamptz, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.evidence
    (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, recorded_at, checksum)
  VALUES (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, at,
          idem.evidence_checksum(id, fence, source, evidence, reason, before_state, after_state, applied, observed_at,
                                 at));
END $$;

-- True if a line about this record is not as it was written. A line without a checksum is older than the checksums, and
-- then it has no line with one before it. In PL/pgSQL, because a plain SQL function is planned with each call.
CREATE OR REPLACE FUNCTION idem.has_damaged_evidence(of uuid) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_damaged boolean;
BEGIN
  SELECT
    coalesce(max(e.line) FILTER (WHERE e.checksum IS NULL) > min(e.line) FILTER (WHERE e.checksum IS NOT NULL), false)
    OR coalesce(bool_or(e.checksum IS DISTINCT FROM idem.evidence_checksum(e.id, e.fence, e.source, e.evidence,
         e.reason, e.before_state, e.after_state, e.applied, e.observed_at, e.recorded_at))
         FILTER (WHERE e.checksum IS NOT NULL), false)
    INTO is_damaged FROM idem.evidence e WHERE e.id = of;
  RETURN is_damaged;
END $$;

-- Raises IDM08 if a line is damaged: what the others say may be contradicted by it.
CREATE OR REPLACE FUNCTION idem.read_evidence(of uuid) RETURNS SETOF idem.evidence LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.has_damaged_evidence(of) THEN
    RAISE EXCEPTION 'a line of the evidence log about % is damaged', idem.handle(of) USING ERRCODE = 'IDM08';
  END IF;
  RETURN QUERY SELECT * FROM idem.evidence e WHERE e.id = of ORDER BY e.line;
END $$;
