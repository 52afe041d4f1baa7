-- Records that are made.

-- The route's current settings hold from the next attempt on.
CREATE OR REPLACE FUNCTION idem.apply_route(INOUT s idem.slots, r idem.reservation) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  s.lease_policy := r.lease_policy;
  s.retention := r.retention;
  s.tombstone := r.tombstone;
  s.provider := r.provider;
  s.sealed_key := r.sealed_key;
END $$;

CREATE OR REPLACE FUNCTION idem.new_record(r idem.reservation, at timestamptz) RETURNS idem.slots LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
BEGIN
  s.id := r.id;
  s.scope := r.scope;
  s.operation := r.operation;
  s.generation := r.generation;
  s.fingerprint := r.fingerprint;
  s.state := 'in_progress';
  s.fence := 0;
  s.token := idem.nil_uuid();
  s.owner := '';
  s.locked_until := idem.epoch();
  s.dispatched := false;
  s := idem.apply_route(s, r);
  s.recovery_point := '';
  s.last_error_code := '';
  s.reconcile_attempts := 0;
  s.charged := 0;
  s.contested := false;
  s.upstream_reference := '';
  s.created_at := at;
  s.changed_at := at;
  RETURN s;
END $$;

-- False: there is a record of this id, or another transaction makes it; nothing was written.
CREATE OR REPLACE FUNCTION idem.insert_new(s idem.slots) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, recovery_point, request, created_at, changed_at, expires_at, charged,
     provider, sealed_key, checksum, unsent_token)
  VALUES
    (s.id, s.scope, s.operation, s.generation, s.fingerprint, s.state, s.fence, s.token, s.owner, s.locked_until,
     s.dispatched, s.lease_policy, s.retention, s.tombstone, s.recovery_point, s.request, s.created_at,
     s.changed_at, s.expires_at, s.charged, s.provider, s.sealed_key, s.checksum, s.unsent_token)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM idem.add_usage(s.scope, idem.active_of(s), s.charged);
  PERFORM idem.keep_parked(s);
  RETURN true;
END $$;

-- Makes `s` pending, with the request that the dispatcher will send.
CREATE OR REPLACE FUNCTION idem.accept_request(INOUT s idem.slots, request bytea, at timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  s.state := 'pending';
  s.request := accept_request.request;
  s.checksum := idem.checksum(s.id, s.fingerprint, '', s.request);
  IF s.charged > 0 THEN s.charged := s.charged + octet_length(request); END IF;
  s.release_basis := NULL;
  s.last_error_code := '';
  s.dispatched := false;
  s.changed_at := at;
  s.locked_until := at;
  s.expires_at := at + idem.ms(s.retention);
  PERFORM idem.schedule_lease_check(s.id, s.expires_at);
END $$;
