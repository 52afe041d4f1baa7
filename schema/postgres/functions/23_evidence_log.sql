-- The log of decisions.

CREATE OR REPLACE FUNCTION idem.evidence_is_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'idem.evidence is append-only' USING ERRCODE = 'IDM09';
END $$;

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON idem.evidence
  EXECUTE FUNCTION idem.evidence_is_append_only();

-- The end of a lease, or of a pending request, by time is a decision about the record, too (§19).
CREATE OR REPLACE FUNCTION idem.note_ended_lease(before idem.slots, after idem.state, decided_by text, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.evidence
    (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, recorded_at)
  VALUES (before.id, before.fence, decided_by,
          CASE before.state WHEN 'in_progress' THEN 'lease_expired' ELSE 'retention_over' END, '',
          before.state, after, true, at, at);
END $$;

CREATE OR REPLACE FUNCTION idem.append_evidence(id uuid, fence bigint, source text, evidence text, reason text,
  before_state idem.state, after_state idem.state, applied boolean, observed_at timestamptz, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.evidence
    (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, recorded_at)
  VALUES (id, fence, source, evidence, reason, before_state, after_state, applied, observed_at, at);
END $$;

CREATE OR REPLACE FUNCTION idem.read_evidence(of uuid) RETURNS SETOF idem.evidence LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT * FROM idem.evidence e WHERE e.id = of ORDER BY e.line;
END;
