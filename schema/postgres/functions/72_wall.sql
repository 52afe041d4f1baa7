-- Row-level security by scope, an option: roles that may work in one scope only, walled in by the owner of the
-- schema with idem.restrict_to_scope(). Until the first such call no table has row-level security.
--
-- Such a role has no right on any table, because rights to write would reach beyond its scope: a record of its own
-- could be made to name another scope's answer, to lie under another scope's id, or to hold values at which a
-- gateway's batch fails. So it goes through functions that run with the owner's rights and look at the scope
-- first; the state machine is all that it can do to a record. The policies are the second wall, for rights that
-- somebody grants later, or to a group, or to everybody: then its own records are seen, and nothing is written.
--
-- For anybody else nothing is hidden: each table has a policy that lets everybody see all, and a restriction takes
-- away from one role. What is hidden from a gateway would run once more, so nothing may ever be by default.
--
--   IDM06  the scope is closed to this role, or its session named none

-- True while a restriction stands around the current user: its own, or that of a role whose rights it has.
CREATE OR REPLACE FUNCTION idem.is_restricted() RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT row_security_active('idem.slots') THEN RETURN false; END IF;
  RETURN EXISTS (SELECT FROM pg_policy p CROSS JOIN LATERAL unnest(p.polroles) r(role)
    WHERE p.polrelid = 'idem.slots'::regclass AND NOT p.polpermissive AND pg_has_role(r.role, 'USAGE'));
END $$;

-- The scope that is open to who called. Within a function of the owner's, current_user is the owner; who called is
-- the role that was set, or else who logged in, and neither can be set to one that they are no member of. Who stands
-- behind several walls has no scope, unless all are the same.
CREATE OR REPLACE FUNCTION idem.scope_of_caller() RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
  scopes text[] COLLATE "C";
BEGIN
  SELECT array_agg(DISTINCT coalesce(r.scope, current_setting('idem.scope', true), '') COLLATE "C") INTO scopes
    FROM idem.restricted_roles r WHERE pg_has_role(caller, r.role, 'USAGE');
  IF cardinality(scopes) = 1 AND scopes[1] <> '' THEN RETURN scopes[1]; END IF;
  RAISE EXCEPTION 'no scope is open to the role %', caller USING ERRCODE = 'IDM06',
    HINT = CASE WHEN '' = ANY (scopes) THEN 'Say SET LOCAL idem.scope = ''...'' in the transaction.'
                WHEN cardinality(scopes) > 1 THEN 'It has the rights of several restricted roles; SET ROLE to one.'
                ELSE 'Call as the role that idem.restrict_to_scope() was called for.' END;
END $$;

CREATE OR REPLACE FUNCTION idem.must_be_open(scope text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text COLLATE "C" := idem.scope_of_caller();
BEGIN
  IF scope IS NULL THEN
    RAISE EXCEPTION 'the scope is null' USING ERRCODE = 'IDM05';
  END IF;
  IF scope COLLATE "C" <> mine THEN
    RAISE EXCEPTION 'the scope % is closed here; % is open', quote_literal(scope), quote_literal(mine)
      USING ERRCODE = 'IDM06';
  END IF;
END $$;
