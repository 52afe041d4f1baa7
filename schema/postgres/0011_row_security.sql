-- Row-level security by scope, an option: roles that may work in one scope only, walled in by the owner of the
-- schema with idem.restrict_to_scope(). Until the first such call no table has row-level security.
--
-- Such a role has no right on any table, because rights to write would reach beyond its scope: a record of its own
-- could be made to name another scope's answer, to lie under another scope's id, or to hold values at which a
-- gateway's batch fails. So it goes through four functions that run with the owner's rights and look at the scope
-- first; the state machine is all that it can do to a record. The policies are the second wall, for rights that
-- somebody grants later, or to a group, or to everybody: then its own records are seen, and nothing is written.
--
-- For anybody else nothing is hidden: each table has a policy that lets everybody see all, and a restriction takes
-- away from one role. What is hidden from a gateway would run once more, so nothing may ever be by default.
--
--   IDM06  the scope is closed to this role, or its session named none

CREATE TABLE idem.restricted_roles (
  role regrole PRIMARY KEY,
  scope text COLLATE "C"                 -- none: the one that the session's setting idem.scope names
);

-- True while a restriction stands around the current user: its own, or that of a role whose rights it has.
CREATE FUNCTION idem.is_restricted() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT row_security_active('idem.slots') THEN RETURN false; END IF;
  RETURN EXISTS (SELECT FROM pg_policy p CROSS JOIN LATERAL unnest(p.polroles) r(role)
    WHERE p.polrelid = 'idem.slots'::regclass AND NOT p.polpermissive AND pg_has_role(r.role, 'USAGE'));
END $$;

-- ---- what a restricted role calls, with the owner's rights ----

-- The scope that is open to who called. Within a function of the owner's, current_user is the owner; who called is
-- the role that was set, or else who logged in, and neither can be set to one that they are no member of. Who stands
-- behind several walls has no scope, unless all are the same.
CREATE FUNCTION idem.scope_of_caller() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
  scopes text[];
BEGIN
  SELECT array_agg(DISTINCT coalesce(r.scope, current_setting('idem.scope', true), '')) INTO scopes
    FROM idem.restricted_roles r WHERE pg_has_role(caller, r.role, 'USAGE');
  IF cardinality(scopes) = 1 AND scopes[1] <> '' THEN RETURN scopes[1]; END IF;
  RAISE EXCEPTION 'no scope is open to the role %', caller USING ERRCODE = 'IDM06',
    HINT = CASE WHEN '' = ANY (scopes) THEN 'Say SET LOCAL idem.scope = ''...'' in the transaction.'
                WHEN cardinality(scopes) > 1 THEN 'It has the rights of several restricted roles; SET ROLE to one.'
                ELSE 'Call as the role that idem.restrict_to_scope() was called for.' END;
END $$;

CREATE FUNCTION idem.must_be_open(scope text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
  mine text := idem.scope_of_caller();
BEGIN
  IF scope IS DISTINCT FROM mine THEN
    RAISE EXCEPTION 'the scope % is closed here; % is open', quote_nullable(scope), quote_literal(mine)
      USING ERRCODE = 'IDM06';
  END IF;
END $$;

-- What the face was until now. It runs with the rights of its caller, which a restricted role does not have.
ALTER FUNCTION idem.record_id(text, text, text) RENAME TO record_id_anywhere;
ALTER FUNCTION idem.reserve(text, text, text, bytea, interval, interval, interval, idem.lease_policy, boolean, uuid,
                            text) RENAME TO reserve_anywhere;
ALTER FUNCTION idem.try_owner(text, uuid, bigint, uuid, interval, text, bytea, bytea, text, idem.release_basis, text,
                              interval) RENAME TO try_owner_anywhere;
ALTER FUNCTION idem.find(uuid) RENAME TO find_anywhere;

CREATE TYPE idem.found AS (
  state idem.state, fence bigint, recovery_point text, locked_until timestamptz, created_at timestamptz,
  changed_at timestamptz, expires_at timestamptz, last_error_code text, upstream_reference text,
  response_status integer, response_headers jsonb, response_body bytea
);

-- Names are made with the store's secret, which a restricted role may not read.
CREATE FUNCTION idem.record_id_in_scope(scope text, operation text, key text) RETURNS uuid LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.must_be_open(scope);
  RETURN idem.record_id_anywhere(scope, operation, key);
END $$;

CREATE FUNCTION idem.reserve_in_scope(scope text, operation text, key text, request bytea, lease interval,
  retention interval, tombstone interval, lease_policy idem.lease_policy, dispatched boolean, attempt uuid, owner text)
RETURNS idem.outcome LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.must_be_open(scope);
  RETURN idem.reserve_anywhere(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched,
                               attempt, owner);
END $$;

-- A record of another scope is answered as one that is not there, and without waiting for who holds it. An id is
-- a digest of its scope too, so what is asked here cannot change before it is used.
CREATE FUNCTION idem.try_owner_in_scope(verb text, operation uuid, fence bigint, attempt uuid, lease interval,
  recovery_point text, head bytea, body bytea, reference text, basis idem.release_basis, error_code text,
  reconcile_in interval) RETURNS idem.owner_reply LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := idem.scope_of_caller();
BEGIN
  IF operation IS NOT NULL
     AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = try_owner_in_scope.operation AND s.scope = mine) THEN
    RETURN ROW('stale', NULL, NULL)::idem.owner_reply;
  END IF;
  RETURN idem.try_owner_anywhere(verb, operation, fence, attempt, lease, recovery_point, head, body, reference, basis,
                                 error_code, reconcile_in);
END $$;

CREATE FUNCTION idem.find_in_scope(operation uuid) RETURNS SETOF idem.found LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := idem.scope_of_caller();
BEGIN
  IF EXISTS (SELECT FROM idem.slots s WHERE s.id = find_in_scope.operation AND s.scope = mine) THEN
    RETURN QUERY SELECT * FROM idem.find_anywhere(operation);
  END IF;
END $$;

-- A function is everybody's when it is made; these are for those that restrict_to_scope() names.
CREATE FUNCTION idem.functions_in_scope() RETURNS SETOF regprocedure LANGUAGE sql STABLE AS $$
  SELECT p.oid::regprocedure FROM pg_proc p
    WHERE p.pronamespace = 'idem'::regnamespace AND p.prosecdef AND p.proname LIKE '%\_in\_scope'
$$;
DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT * FROM idem.functions_in_scope() LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

-- ---- the face, as ever: each goes one of the two ways ----

CREATE FUNCTION idem.record_id(scope text, operation text, key text) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF idem.is_restricted() THEN RETURN idem.record_id_in_scope(scope, operation, key); END IF;
  RETURN idem.record_id_anywhere(scope, operation, key);
END $$;

CREATE FUNCTION idem.reserve(
  scope text, operation text, key text, request bytea,
  lease interval DEFAULT '60 seconds', retention interval DEFAULT '24 hours', tombstone interval DEFAULT '720 hours',
  lease_policy idem.lease_policy DEFAULT 'unknown', dispatched boolean DEFAULT true,
  attempt uuid DEFAULT gen_random_uuid(), owner text DEFAULT current_setting('application_name')
) RETURNS idem.outcome LANGUAGE plpgsql AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN idem.reserve_in_scope(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched,
                                 attempt, owner);
  END IF;
  RETURN idem.reserve_anywhere(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched,
                               attempt, owner);
END $$;

CREATE FUNCTION idem.try_owner(verb text, operation uuid, fence bigint, attempt uuid, lease interval,
  recovery_point text, head bytea, body bytea, reference text, basis idem.release_basis, error_code text,
  reconcile_in interval) RETURNS idem.owner_reply LANGUAGE plpgsql AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN idem.try_owner_in_scope(verb, operation, fence, attempt, lease, recovery_point, head, body, reference, basis,
                                   error_code, reconcile_in);
  END IF;
  RETURN idem.try_owner_anywhere(verb, operation, fence, attempt, lease, recovery_point, head, body, reference, basis,
                                 error_code, reconcile_in);
END $$;

CREATE FUNCTION idem.find(operation uuid) RETURNS SETOF idem.found LANGUAGE plpgsql AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN QUERY SELECT * FROM idem.find_in_scope(operation);
  ELSE
    RETURN QUERY SELECT * FROM idem.find_anywhere(operation);
  END IF;
END $$;

-- ---- the owner's: to wall a role in, and to take the wall away ----

-- Tables with policies. A day's answers are reached through idem.answers alone: no policy, so nothing is seen there.
CREATE FUNCTION idem.tables_with_policies() RETURNS SETOF regclass LANGUAGE sql STABLE AS $$
  SELECT c.oid::regclass FROM pg_class c
    WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.oid
$$;

CREATE FUNCTION idem.set_row_security(enabled boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  t regclass;
BEGIN
  FOR t IN
    SELECT c.oid FROM pg_class c
      WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity <> enabled
      ORDER BY c.oid
  LOOP
    EXECUTE format('ALTER TABLE %s %s ROW LEVEL SECURITY', t, CASE WHEN enabled THEN 'ENABLE' ELSE 'DISABLE' END);
  END LOOP;
  FOR t IN SELECT * FROM idem.tables_with_policies() LOOP
    CONTINUE WHEN enabled = EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t AND p.polname = 'unrestricted');
    EXECUTE format(CASE WHEN enabled THEN 'CREATE POLICY unrestricted ON %s USING (true)'
                        ELSE 'DROP POLICY unrestricted ON %s' END, t);
  END LOOP;
END $$;

-- Takes all rights in the schema from a role; of those that others granted, only the owner's own are gone then.
CREATE FUNCTION idem.take_rights(role name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  id oid := quote_ident(role)::regrole;
  p record;
  f regprocedure;
BEGIN
  FOR p IN
    SELECT o.polname, o.polrelid::regclass AS t FROM pg_policy o JOIN pg_class c ON c.oid = o.polrelid
      WHERE c.relnamespace = 'idem'::regnamespace AND NOT o.polpermissive AND o.polroles = ARRAY[id]
  LOOP
    EXECUTE format('DROP POLICY %I ON %s', p.polname, p.t);
  END LOOP;
  DELETE FROM idem.restricted_roles r WHERE r.role = id;
  EXECUTE format('REVOKE ALL ON SCHEMA idem FROM %I', role);
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA idem FROM %I', role);
  EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA idem FROM %I', role);
  FOR f IN SELECT * FROM idem.functions_in_scope() LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', f, role);
  END LOOP;
END $$;

-- From now on `role` works in one scope: in `scope`, whatever it sets; where that is null, in the one that its
-- session names with SET idem.scope, and in none before it did. It gets the rights that this takes, and loses all
-- others that it had in the schema. Refused (IDM05) for a role that would go around the wall. Open transactions
-- that use the tables are waited for half a second at each, so that no batch of a gateway is held up for longer, and
-- none has to give way in a deadlock; then 55P03: nothing was done, try again.
CREATE FUNCTION idem.restrict_to_scope(role name, scope text DEFAULT NULL) RETURNS void LANGUAGE plpgsql
SET lock_timeout = '500ms' AS $$
DECLARE
  t regclass;
  f regprocedure;
  way name;
BEGIN
  IF scope = '' THEN
    RAISE EXCEPTION 'a scope is not empty; leave it away for the one that the session names' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM pg_advisory_xact_lock(1229210957, 2);  -- A day that is made meanwhile would not know of this.
  PERFORM idem.take_rights(role);
  SELECT m.rolname INTO way FROM pg_roles m
    WHERE pg_has_role(role, m.oid, 'MEMBER') AND (m.rolsuper OR m.rolbypassrls OR EXISTS (
      SELECT FROM pg_class c WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p')
        AND has_table_privilege(m.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')))
    ORDER BY m.rolname <> role LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the role % cannot be restricted: % goes around the wall', role, way USING ERRCODE = 'IDM05',
      HINT = 'Neither it nor a role that it belongs to may be a superuser, have BYPASSRLS or have rights on tables of '
             'the schema idem; PUBLIC has none there either.';
  END IF;
  PERFORM idem.set_row_security(true);
  FOR t IN SELECT * FROM idem.tables_with_policies() LOOP
    EXECUTE format('CREATE POLICY %1$I ON %2$s AS RESTRICTIVE TO %1$I USING (%3$s) WITH CHECK (false)', role, t,
      CASE WHEN t <> 'idem.slots'::regclass THEN 'false'
           WHEN scope IS NULL THEN 'scope = current_setting(''idem.scope'', true)'
           ELSE format('scope = %L', scope) END);
  END LOOP;
  INSERT INTO idem.restricted_roles VALUES (quote_ident(role)::regrole, scope);
  EXECUTE format('GRANT USAGE ON SCHEMA idem TO %I', role);
  FOR f IN SELECT * FROM idem.functions_in_scope() LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
  END LOOP;
END $$;

-- The reverse: `role` has no rights in the schema any more. With the last one the tables are as they were before.
CREATE FUNCTION idem.lift_restriction(role name) RETURNS void LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1229210957, 2);
  PERFORM idem.take_rights(role);
  IF NOT EXISTS (SELECT FROM idem.restricted_roles) THEN PERFORM idem.set_row_security(false); END IF;
END $$;

-- As before, and a new day is closed to direct looks like those that were there.
CREATE OR REPLACE FUNCTION idem.make_day(day date) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  name text := 'answers_' || to_char(day, 'YYYYMMDD');
  first text := to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00';
  next text := to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00';
BEGIN
  PERFORM set_config('lock_timeout', '50ms', true);
  PERFORM pg_advisory_xact_lock(1229210957, 2);
  IF to_regclass('idem.' || name) IS NOT NULL OR EXISTS (
    SELECT FROM idem.answers_without_day a
    WHERE a.expires_at >= first::timestamptz AND a.expires_at < next::timestamptz) THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE idem.%I (LIKE idem.answers INCLUDING ALL)', name);
  IF (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = 'idem.answers'::regclass) THEN
    EXECUTE format('ALTER TABLE idem.%I ENABLE ROW LEVEL SECURITY', name);
  END IF;
  EXECUTE format('ALTER TABLE idem.answers ATTACH PARTITION idem.%I FOR VALUES FROM (%L) TO (%L)', name, first, next);
  RETURN true;
END $$;
