-- The dispatcher's claim: begins a new attempt of the pending request that has been due the longest. No row: none is
-- due. A row without a request: the request is damaged.
CREATE OR REPLACE FUNCTION idem.claim(token uuid, owner text, lease bigint, dispatched boolean)
RETURNS TABLE (operation uuid, scope text, operation_name text, fence bigint, request bytea, recovery_point text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  -- A store whose copy takes its place begins no work (idem store copy), and its mark comes under this lock.
  IF NOT pg_try_advisory_xact_lock_shared(1229210957, 1) THEN RETURN; END IF;
  IF (SELECT i.key_scope NOT IN ('operation', 'tenant') FROM idem.identity i) THEN RETURN; END IF;
  SELECT t.* INTO s FROM idem.parked_records w JOIN idem.slots t ON t.id = w.id
    WHERE w.state = 'pending' AND w.moment <= at AND t.state = 'pending' AND t.locked_until <= at AND t.expires_at > at
    ORDER BY w.moment, w.id LIMIT 1 FOR UPDATE OF t SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  IF idem.has_damaged_request(s) OR idem.contradicts_itself(s) THEN
    -- It never runs. A claim meets it again in an hour, until it expires.
    s.locked_until := at + interval '1 hour';
    PERFORM idem.update_record(s);
    RETURN QUERY SELECT s.id, s.scope, s.operation, s.fence, NULL::bytea, s.recovery_point;
    RETURN;
  END IF;
  s := idem.begin_attempt(s, token, owner, lease, dispatched, at);
  s.provider := NULL;                    -- The current route sends it.
  PERFORM idem.update_record(s);
  RETURN QUERY SELECT s.id, s.scope, s.operation, s.fence, s.request, s.recovery_point;
END $$;
