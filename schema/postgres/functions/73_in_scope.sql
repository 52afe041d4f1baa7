-- The functions for restricted roles; they run with the owner's rights.

-- The store's secret makes names, and a restricted role may not read it.
CREATE OR REPLACE FUNCTION idem.record_id_in_scope(scope text, operation text, key text) RETURNS uuid
LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.must_be_own_scope(scope);
  RETURN idem.record_id_anywhere(scope, operation, key);
END $$;

CREATE OR REPLACE FUNCTION idem.reserve_in_scope(scope text, operation text, key text, request bytea, lease interval,
  retention interval, tombstone interval, lease_policy idem.lease_policy, dispatched boolean, attempt uuid, owner text)
RETURNS idem.outcome LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.must_be_own_scope(scope);
  RETURN idem.reserve_anywhere(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched,
                               attempt, owner);
END $$;

-- A record of another scope reads as missing, without a wait for its lock. A record never changes its scope, because
-- its id is a digest of the scope, too.
CREATE OR REPLACE FUNCTION idem.try_owner_in_scope(verb text, operation uuid, fence bigint, attempt uuid,
  lease interval, recovery_point text, head bytea, body bytea, reference text, basis idem.release_basis,
  error_code text, reconcile_in interval) RETURNS idem.owner_reply LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text COLLATE "C" := idem.scope_of_caller();
BEGIN
  IF operation IS NOT NULL
     AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = try_owner_in_scope.operation AND s.scope = mine) THEN
    RETURN ROW('stale', NULL, NULL)::idem.owner_reply;
  END IF;
  RETURN idem.try_owner_anywhere(verb, operation, fence, attempt, lease, recovery_point, head, body, reference, basis,
                                 error_code, reconcile_in);
END $$;

CREATE OR REPLACE FUNCTION idem.find_in_scope(operation uuid) RETURNS SETOF idem.found LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text COLLATE "C" := idem.scope_of_caller();
BEGIN
  IF EXISTS (SELECT FROM idem.slots s WHERE s.id = find_in_scope.operation AND s.scope = mine) THEN
    RETURN QUERY SELECT * FROM idem.find_anywhere(operation);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION idem.rows_in_clear_in_scope()
RETURNS TABLE (scope text, operation text, answers bigint, requests bigint) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT c.* FROM idem.rows_in_clear_of(idem.scope_of_caller()) c;
END;

CREATE OR REPLACE FUNCTION idem.enqueue_in_scope(operation uuid, fence bigint, attempt uuid, destination text,
  type text, payload text, aggregatetype text, aggregateid text, content_type text) RETURNS uuid LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text COLLATE "C" := idem.scope_of_caller();
BEGIN
  IF operation IS NOT NULL
     AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = enqueue_in_scope.operation AND s.scope = mine) THEN
    PERFORM idem.must('enqueue', operation, ROW('stale', NULL, NULL)::idem.owner_reply);
  END IF;
  RETURN idem.enqueue_anywhere(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid,
                               content_type);
END $$;

-- PUBLIC may execute a new function; these are only for roles that restrict_to_scope() names.
CREATE OR REPLACE FUNCTION idem.functions_in_scope() RETURNS SETOF regprocedure LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT p.oid::regprocedure FROM pg_proc p
    WHERE p.pronamespace = 'idem'::regnamespace AND p.prosecdef AND p.proname LIKE E'%\\_in\\_scope';
END;

DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT * FROM idem.functions_in_scope() LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;
