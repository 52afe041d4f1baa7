-- Reserves, as the store sends them: in batches.

-- Begins a batch: tries the locks of its different ids, which are the first of `ids`, checks the generation, and
-- chooses the calls (by number) that may make a record within the quota of their scope.
CREATE OR REPLACE FUNCTION idem.begin_reserves(
  asked_generation bigint, different integer, ids uuid[], scopes text[], leases bigint[], q idem.quota,
  OUT locked boolean[], OUT new_calls integer[], OUT shortest_lease bigint, OUT at timestamptz
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  current bigint;
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM idem.be_durable(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.must_read_committed(); END IF;
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  -- An INSERT would wait for a transaction that holds such a row, or makes it. The maker of a record holds its lock
  -- until it commits or rolls back. So under the lock the next statement sees what there is, no other transaction can
  -- add to it, and the INSERT meets no conflict.
  SELECT array_agg(pg_try_advisory_xact_lock(idem.lock_of(ids[a.number]))), min(leases[a.number]),
         (SELECT i.generation FROM idem.identity i)
    INTO locked, shortest_lease, current FROM generate_series(1, different) a(number);
  IF current IS DISTINCT FROM asked_generation THEN PERFORM idem.lock_generation(asked_generation); END IF;
  at := idem.now();
  IF q IS NULL THEN
    new_calls := ARRAY(SELECT generate_series(1, different));
    RETURN;
  END IF;
  new_calls := ARRAY(SELECT a.number FROM generate_series(1, different) a(number)
    WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number]));
  IF q.keys > 0 OR q.key_interval > 0 THEN
    -- All transactions lock scopes in this order, and have no other locks by then but of ids, for which none waits.
    PERFORM pg_advisory_xact_lock(1229210958, l.number)
      FROM (SELECT DISTINCT hashtext(scopes[c.number] COLLATE "C") AS number
              FROM unnest(new_calls) c(number) ORDER BY 1) l;
    at := idem.now();
  END IF;
  WITH numbered AS MATERIALIZED (
    SELECT c.number, scopes[c.number] COLLATE "C" AS scope,
           row_number() OVER (PARTITION BY scopes[c.number] COLLATE "C" ORDER BY c.number) AS nth
      FROM unnest(new_calls) c(number)
  ), limited AS MATERIALIZED (
    SELECT n.scope, idem.keys_left(n.scope, q, at) AS keys FROM numbered n WHERE n.nth = 1
  )
  SELECT coalesce(array_agg(n.number ORDER BY n.number), '{}') INTO new_calls
    FROM numbered n JOIN limited l ON l.scope = n.scope WHERE n.nth <= l.keys;
END $$;

-- Up to 256 reserves, of which the first `different` have different ids. New keys, nearly all there is, are one
-- statement. The first row of the result has their fences, 0 for the others; each other row is one call.
-- A plan that was made while the table was new has no statistics and is kept: so always by index.
CREATE OR REPLACE FUNCTION idem.reserve_many(
  asked_generation bigint, different integer, ids uuid[], scopes text[], operations text[], offered bytea[],
  tokens uuid[], owners text[], leases bigint[], policies text[], dispatches boolean[], retentions bigint[],
  tombstones bigint[], key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL, quota_keys bigint DEFAULT NULL,
  quota_bytes bigint DEFAULT NULL, providers text[] DEFAULT NULL, sealed_keys bytea[] DEFAULT NULL
) RETURNS TABLE (granted bigint[], number integer, answered idem.outcome) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '2s' AS $$
DECLARE
  q idem.quota;
  batch record;
  at timestamptz;
  made uuid[];
  fences bigint[];
BEGIN
  IF key_interval IS NOT NULL THEN q := ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota; END IF;
  batch := idem.begin_reserves(asked_generation, different, ids, scopes, leases, q);
  at := batch.at;
  WITH inserted AS (
    INSERT INTO idem.slots
      (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
       lease_policy, retention, tombstone, created_at, changed_at, charged, provider, sealed_key,
       unsent_token)
    SELECT ids[a.number], scopes[a.number], operations[a.number], asked_generation, substr(offered[a.number], 1, 36),
           'in_progress', nextval('idem.fences'), tokens[a.number], owners[a.number], at + idem.ms(leases[a.number]),
           dispatches[a.number], CASE WHEN policies[a.number] = 'unknown' COLLATE "C" THEN 'unknown'
                                      ELSE policies[a.number]::idem.lease_policy END,
           retentions[a.number], tombstones[a.number],
           at, at, CASE WHEN q IS NULL THEN 0 ELSE 1024 END, providers[a.number], sealed_keys[a.number],
           CASE WHEN NOT dispatches[a.number] THEN tokens[a.number] END
    FROM unnest(batch.new_calls) a(number)
    WHERE batch.locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number])
    RETURNING id, fence
  )
  SELECT array_agg(i.id), array_agg(i.fence) INTO made, fences FROM inserted i;
  IF q IS NOT NULL AND made IS NOT NULL THEN
    PERFORM idem.add_usage(n.scope, count(*), count(*) * idem.record_charge()),
            idem.advance_key_rate(n.scope, q, count(*), at)
      FROM (SELECT scopes[c.number] COLLATE "C" AS scope FROM unnest(batch.new_calls) c(number)) n
      GROUP BY n.scope;
  END IF;
  IF made IS NOT NULL THEN
    INSERT INTO idem.lease_due_batches VALUES (at + idem.ms(batch.shortest_lease), made);
  END IF;
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
