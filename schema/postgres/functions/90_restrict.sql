-- For the owner of the schema: restricts a role to one scope, and lifts the restriction.

-- Tables with policies. The table of a day's answers has none, so a direct SELECT from it sees nothing; idem.answers
-- shows them. The journal has none for any role, and always has row-level security.
CREATE OR REPLACE FUNCTION idem.tables_with_policies() RETURNS SETOF regclass LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT c.oid::regclass FROM pg_class c
    WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND c.oid <> 'idem.journal'::regclass ORDER BY c.oid;
END;

CREATE OR REPLACE FUNCTION idem.set_row_security(enabled boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t regclass;
BEGIN
  FOR t IN
    SELECT c.oid FROM pg_class c
      WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity <> enabled
        AND c.oid <> 'idem.journal'::regclass
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

-- Revokes a role's rights in the schema: those that the owner granted, not those that others did.
CREATE OR REPLACE FUNCTION idem.revoke_rights(role name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
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

-- Adds missing policies and rights on the SQL face. Other rights of the role stay, and tables that have their policy
-- are not locked.
CREATE OR REPLACE FUNCTION idem.restrict_role(role name, scope text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t regclass;
  f regprocedure;
BEGIN
  PERFORM idem.set_row_security(true);
  FOR t IN SELECT * FROM idem.tables_with_policies() LOOP
    -- By the role, not by the policy's name: the policies of a renamed role have its old name.
    CONTINUE WHEN EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t AND NOT p.polpermissive
                            AND p.polroles = ARRAY[quote_ident(role)::regrole::oid]);
    EXECUTE format('CREATE POLICY %1$I ON %2$s AS RESTRICTIVE TO %1$I USING (%3$s) WITH CHECK (false)', role, t,
      CASE WHEN t <> 'idem.slots'::regclass THEN 'false'
           WHEN scope IS NULL THEN 'scope = current_setting(''idem.scope'', true)'
           ELSE format('scope = %L', scope) END);
  END LOOP;
  EXECUTE format('GRANT USAGE ON SCHEMA idem TO %I', role);
  FOR f IN SELECT * FROM idem.functions_in_scope() LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
  END LOOP;
END $$;

-- From now on `role` works in one scope: in `scope`, whatever it sets; if that is NULL, in the one that its session
-- names with SET idem.scope, and in none before. It gets the rights that this needs, and loses all others in the
-- schema. Raises IDM05 for a role that could evade the restriction. At each table it waits half a second for open
-- transactions, so that no batch of a gateway waits longer or has to give way in a deadlock; then 55P03: nothing was
-- done, try again.
CREATE OR REPLACE FUNCTION idem.restrict_to_scope(role name, scope text DEFAULT NULL) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms' AS $$
DECLARE
  way name;
BEGIN
  IF role IS NULL THEN
    RAISE EXCEPTION 'restrict_to_scope: the role is null' USING ERRCODE = 'IDM05';
  END IF;
  IF scope = '' COLLATE "C" THEN
    RAISE EXCEPTION 'the scope is empty; leave it out to use the one that the session names' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM pg_advisory_xact_lock(1229210957, 2);  -- No table of a day may be made meanwhile, without row-level security.
  PERFORM idem.revoke_rights(role);
  SELECT m.rolname INTO way FROM pg_roles m
    WHERE pg_has_role(role, m.oid, 'MEMBER') AND (m.rolsuper OR m.rolbypassrls OR EXISTS (
      SELECT FROM pg_class c WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p')
        AND has_table_privilege(m.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')))
    ORDER BY m.rolname <> role LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the role % cannot be restricted: row-level security does not stop %', role, way
      USING ERRCODE = 'IDM05',
      HINT = 'The role and the roles that it belongs to must not be superusers, have BYPASSRLS, or have rights on '
             'tables of the schema idem. PUBLIC must not have such rights either.';
  END IF;
  PERFORM idem.restrict_role(role, scope);
  INSERT INTO idem.restricted_roles VALUES (quote_ident(role)::regrole, scope);
END $$;

-- The reverse: `role` loses its rights in the schema. Without restricted roles the tables have no row-level security.
CREATE OR REPLACE FUNCTION idem.lift_restriction(role name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
BEGIN
  IF role IS NULL THEN
    RAISE EXCEPTION 'lift_restriction: the role is null' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM pg_advisory_xact_lock(1229210957, 2);
  PERFORM idem.revoke_rights(role);
  IF NOT EXISTS (SELECT FROM idem.restricted_roles) THEN PERFORM idem.set_row_security(false); END IF;
END $$;

-- Roles that are restricted already get new functions of the SQL face, and policies on new tables.
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT a.rolname, w.scope FROM idem.restricted_roles w JOIN pg_roles a ON a.oid = w.role LOOP
    PERFORM idem.restrict_role(r.rolname, r.scope);
  END LOOP;
END $$;
