-- When somebody next tries to find out about an unknown record (§19).

-- Of several that have read the same plan one succeeds. Verdicts: done, not_found, wrong_state, wrong_fence,
-- superseded. Without a source no line is left in the log.
CREATE FUNCTION idem.reschedule(id uuid, fence bigint, attempts integer, reconcile_in bigint, source text,
  evidence text, reason text, observed_at timestamptz)
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.wait_a_while();
  SELECT * INTO s FROM idem.slots t WHERE t.id = reschedule.id FOR UPDATE;
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
      PERFORM idem.put(s);
    END IF;
    state := idem.state_at(s, at);
  END IF;
  IF source <> '' THEN
    PERFORM idem.append_evidence(reschedule.id, reschedule.fence, source, evidence, reason, before, state, false,
                                 reschedule.observed_at, at);
  END IF;
  RETURN NEXT;
END $$;

-- Restricted roles have no way to it.
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT a.rolname, w.scope FROM idem.restricted_roles w JOIN pg_roles a ON a.oid = w.role LOOP
    PERFORM idem.restrict_to_scope(r.rolname, r.scope);
  END LOOP;
END $$;
