-- Reserves, as the gateway asks them: in batches.

-- Up to 256 reserves, of which the first `different` are each of another key. New keys, which is nearly all there
-- is, are one statement. The first row of the answer has their fences, 0 for the others; each other row one call.
CREATE OR REPLACE FUNCTION idem.reserve_many(
  asked_generation bigint, different integer, ids uuid[], scopes text[], operations text[], offered bytea[],
  tokens uuid[], owners text[], leases bigint[], policies text[], dispatches boolean[], retentions bigint[],
  tombstones bigint[], key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL, quota_keys bigint DEFAULT NULL,
  quota_bytes bigint DEFAULT NULL, providers text[] DEFAULT NULL, sealed_keys bytea[] DEFAULT NULL
) RETURNS TABLE (granted bigint[], number integer, answered idem.outcome) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
  at timestamptz;
  current bigint;
  shortest bigint;
  locked boolean[];
  made uuid[];
  fences bigint[];
  fresh integer[] := ARRAY(SELECT generate_series(1, different));  -- that may be made
  q idem.quota;
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM idem.be_durable(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.see_what_is_committed(); END IF;
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  -- An INSERT would wait for who holds what lies there already, or makes it. Who makes a record holds its lock
  -- until that is committed or given up. So with the lock, the next statement sees what there is, and nobody can
  -- come between: it meets no conflict.
  SELECT array_agg(pg_try_advisory_xact_lock(idem.lock_of(ids[a.number]))), min(leases[a.number]),
         (SELECT i.generation FROM idem.identity i)
    INTO locked, shortest, current FROM generate_series(1, different) a(number);
  IF current IS DISTINCT FROM asked_generation THEN PERFORM idem.in_generation(asked_generation); END IF;
  at := idem.now();
  IF key_interval IS NOT NULL THEN
    q := ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota;
    fresh := ARRAY(SELECT a.number FROM generate_series(1, different) a(number)
      WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number]));
    IF q.keys > 0 OR q.key_interval > 0 THEN
      -- In one order by all. Who waits has no other locks but of keys, for which nobody waits.
      PERFORM pg_advisory_xact_lock(1229210958, l.number)
        FROM (SELECT DISTINCT hashtext(scopes[f.number] COLLATE "C") AS number FROM unnest(fresh) f(number) ORDER BY 1) l;
      at := idem.now();
    END IF;
    WITH numbered AS MATERIALIZED (
      SELECT f.number, scopes[f.number] COLLATE "C" AS scope,
             row_number() OVER (PARTITION BY scopes[f.number] COLLATE "C" ORDER BY f.number) AS nth
        FROM unnest(fresh) f(number)
    ), rooms AS MATERIALIZED (
      SELECT n.scope, idem.room(n.scope, q, at) AS keys FROM numbered n WHERE n.nth = 1
    )
    SELECT coalesce(array_agg(n.number ORDER BY n.number), '{}') INTO fresh
      FROM numbered n JOIN rooms r ON r.scope = n.scope WHERE n.nth <= r.keys;
  END IF;
  WITH inserted AS (
    INSERT INTO idem.slots
      (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
       lease_policy, retention, tombstone, created_at, changed_at, charged, provider, sealed_key)
    SELECT ids[a.number], scopes[a.number], operations[a.number], asked_generation, substr(offered[a.number], 1, 36),
           'in_progress', nextval('idem.fences'), tokens[a.number], owners[a.number], at + idem.ms(leases[a.number]),
           dispatches[a.number],
           CASE WHEN policies[a.number] = 'unknown' COLLATE "C" THEN 'unknown' ELSE policies[a.number]::idem.lease_policy END,
           retentions[a.number], tombstones[a.number],
           at, at, CASE WHEN q IS NULL THEN 0 ELSE 1024 END, providers[a.number], sealed_keys[a.number]
    FROM unnest(fresh) a(number)
    WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number])
    RETURNING id, fence
  )
  SELECT array_agg(i.id), array_agg(i.fence) INTO made, fences FROM inserted i;
  IF q IS NOT NULL AND made IS NOT NULL THEN
    PERFORM idem.note_usage(n.scope, count(*), count(*) * idem.record_charge()), idem.pass_keys(n.scope, q, count(*), at)
      FROM (SELECT scopes[f.number] COLLATE "C" AS scope FROM unnest(fresh) f(number)) n GROUP BY n.scope;
  END IF;
  IF made IS NOT NULL THEN INSERT INTO idem.lease_due_batches VALUES (at + idem.ms(shortest), made); END IF;
  IF made = ids THEN
    granted := fences;
    RETURN NEXT;
    RETURN;
  END IF;

  granted := (SELECT array_agg(coalesce(fences[array_position(made, ids[a.number])], 0) ORDER BY a.number)
    FROM generate_series(1, different) a(number));
  fences := granted;
  RETURN NEXT;
  granted := NULL;
  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN fences[n] <> 0;
    number := n;
    answered := idem.reserve_one(
      ROW(ids[n], scopes[n], operations[n], asked_generation, substr(offered[n], 1, 36), tokens[n], owners[n],
          leases[n], policies[n]::idem.lease_policy, dispatches[n], retentions[n], tombstones[n],
          providers[n], sealed_keys[n])::idem.reservation,
      idem.fingerprints(offered[n]), NULL, NULL, NULL, false, q);
    RETURN NEXT;
  END LOOP;
END $$;
