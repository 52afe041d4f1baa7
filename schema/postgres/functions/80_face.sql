-- The SQL face (protocol.md §17): a service calls it in its own transaction, from any language. Behind a gateway,
-- operation, fence and attempt come from the request's fields Idem-Operation, Idem-Fence and Idem-Attempt. A call that
-- would do nothing raises, so that the caller's rows roll back with it; the functions named try_... return a verdict
-- instead. Restricted roles go through 73_in_scope.sql, all others through 71_anywhere.sql.
--
--   IDM01  stale: the attempt is not the record's current one
--   IDM02  settled: this attempt has ended before, and its first ending is kept
--   IDM03  the store's identity is of another generation
--   IDM04  held: another transaction has the record; try again
--   IDM05  an argument is wrong
--   IDM08  the record is damaged
--   IDM09  the evidence log is append-only
--   IDM10  the stored answer is encrypted

-- The record's handle, as the gateway makes it.
CREATE OR REPLACE FUNCTION idem.record_id(scope text, operation text, key text) RETURNS uuid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_restricted() THEN RETURN idem.record_id_in_scope(scope, operation, key); END IF;
  RETURN idem.record_id_anywhere(scope, operation, key);
END $$;

-- Wins the right to execute, or returns the state of the attempt that has or had it. `request` distinguishes a retry
-- from another request under the same key: the request's bytes, or a digest of them. Committed before the work starts,
-- the reservation is durable whatever the work does; in the work's transaction, both commit together.
CREATE OR REPLACE FUNCTION idem.reserve(
  scope text, operation text, key text, request bytea,
  lease interval DEFAULT '60 seconds', retention interval DEFAULT '24 hours', tombstone interval DEFAULT '720 hours',
  lease_policy idem.lease_policy DEFAULT 'unknown', dispatched boolean DEFAULT true,
  attempt uuid DEFAULT gen_random_uuid(), owner text DEFAULT current_setting('application_name')
) RETURNS idem.outcome LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN idem.reserve_in_scope(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched,
                                 attempt, owner);
  END IF;
  RETURN idem.reserve_anywhere(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched,
                               attempt, owner);
END $$;

CREATE OR REPLACE FUNCTION idem.try_owner(verb text, operation uuid, fence bigint, attempt uuid, lease interval,
  recovery_point text, head bytea, body bytea, reference text, basis idem.release_basis, error_code text,
  reconcile_in interval) RETURNS idem.owner_reply LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN idem.try_owner_in_scope(verb, operation, fence, attempt, lease, recovery_point, head, body, reference, basis,
                                   error_code, reconcile_in);
  END IF;
  RETURN idem.try_owner_anywhere(verb, operation, fence, attempt, lease, recovery_point, head, body, reference, basis,
                                 error_code, reconcile_in);
END $$;

-- The record as it reads now, with its stored answer. No row: there is no record.
CREATE OR REPLACE FUNCTION idem.find(operation uuid) RETURNS SETOF idem.found LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF operation IS NULL THEN
    RAISE EXCEPTION 'find: the operation is null' USING ERRCODE = 'IDM05';
  END IF;
  IF idem.is_restricted() THEN
    RETURN QUERY SELECT * FROM idem.find_in_scope(operation);
  ELSE
    RETURN QUERY SELECT * FROM idem.find_anywhere(operation);
  END IF;
END $$;

-- How many records of each scope and operation have an answer, or a stored request, that is not encrypted. Answers that
-- this face writes are among them. A restricted role sees its own scope.
CREATE OR REPLACE FUNCTION idem.rows_in_clear()
RETURNS TABLE (scope text, operation text, answers bigint, requests bigint) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN QUERY SELECT * FROM idem.rows_in_clear_in_scope();
  ELSE
    RETURN QUERY SELECT * FROM idem.rows_in_clear_of(NULL);
  END IF;
END $$;
