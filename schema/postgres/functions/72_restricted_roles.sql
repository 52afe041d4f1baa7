-- Row-level security by scope, an option: the owner of the schema restricts a role to one scope with
-- idem.restrict_to_scope(). Until the first such call no table has row-level security.
--
-- A restricted role has no right on any table, because rights to write would reach beyond its scope: its own record
-- could name another scope's answer, lie under another scope's id, or hold values at which a gateway's batch fails. So
-- it calls functions that run with the owner's rights and check the scope first, and can change a record only by the
-- state machine. The policies are a second protection, for rights that are granted later, to the role, to a group or to
-- PUBLIC: then the role sees its own records, and writes nothing.
--
-- Other roles see everything: each table has a policy that shows all rows to all roles, and a restriction takes away
-- from one role. A record that is hidden from a gateway would run again, so no policy may hide rows by default.
--
--   IDM06  the role may not use this scope, or its session named none

-- True if the current user is restricted, itself or by a role whose rights it has.
CREATE OR REPLACE FUNCTION idem.is_restricted() RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT row_security_active('idem.slots') THEN RETURN false; END IF;
  RETURN EXISTS (SELECT FROM pg_policy p CROSS JOIN LATERAL unnest(p.polroles) r(role)
    WHERE p.polrelid = 'idem.slots'::regclass AND NOT p.polpermissive AND pg_has_role(r.role, 'USAGE'));
END $$;

-- The scope that the caller may use. Within a function of the owner's, current_user is the owner. The caller is the
-- role that was set, or else the login role; neither can be set to a role of which the user is not a member. A caller
-- with several restrictions has a scope only if all are the same.
CREATE OR REPLACE FUNCTION idem.scope_of_caller() RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
  scopes text[] COLLATE "C";
BEGIN
  SELECT array_agg(DISTINCT coalesce(r.scope, current_setting('idem.scope', true), '') COLLATE "C") INTO scopes
    FROM idem.restricted_roles r WHERE pg_has_role(caller, r.role, 'USAGE');
  IF cardinality(scopes) = 1 AND scopes[1] <> '' THEN RETURN scopes[1]; END IF;
  RAISE EXCEPTION 'the role % may use no scope', caller USING ERRCODE = 'IDM06',
    HINT = CASE WHEN '' = ANY (scopes) THEN 'Run SET LOCAL idem.scope = ''...'' in the transaction.'
                WHEN cardinality(scopes) > 1 THEN 'It has the rights of several restricted roles; SET ROLE to one.'
                ELSE 'Call as the role that idem.restrict_to_scope() was called for.' END;
END $$;

CREATE OR REPLACE FUNCTION idem.must_be_own_scope(scope text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text COLLATE "C" := idem.scope_of_caller();
BEGIN
  IF scope IS NULL THEN
    RAISE EXCEPTION 'the scope is null' USING ERRCODE = 'IDM05';
  END IF;
  IF scope COLLATE "C" <> mine THEN
    RAISE EXCEPTION 'this role may not use the scope %, but %', quote_literal(scope), quote_literal(mine)
      USING ERRCODE = 'IDM06';
  END IF;
END $$;
