-- Owners' verbs, as the gateway asks them: in batches.

-- This function and idem.reserve_many() know their calls by number: to take apart a dozen arrays side by side costs more
-- than to look an update's values up in them.

-- Up to 256 owners' verbs, each of another record; what only other verbs than complete mean may be empty where
-- there are none. Completions of running attempts, which is nearly all there is,
-- are one statement; rows that somebody holds are left alone.
CREATE OR REPLACE FUNCTION idem.owners_many(
  verbs text[], ids uuid[], fences bigint[], tokens uuid[], leases bigint[], recovery_points text[],
  heads bytea[], bodies bytea[], refs text[], bases text[], error_codes text[],
  retry_ins bigint[], reconcile_ins bigint[]
) RETURNS SETOF idem.numbered_reply LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  due_at timestamptz;
  larger integer;
  whose text[];
  more bigint[];
  reply idem.owner_reply;
  row idem.numbered_reply;
  is_contradicted boolean;
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM idem.be_durable(); END IF;
  WITH held AS MATERIALIZED (
    -- Nobody is waited for here, so the order in which rows are locked does not matter.
    SELECT s.ctid AS place, a.number, idem.is_small(heads[a.number], bodies[a.number]) IS TRUE AS is_small, s.charged AS charge
      FROM generate_series(1, cardinality(ids)) a(number) JOIN idem.slots s ON s.id = ids[a.number]
      WHERE verbs[a.number] = 'complete' COLLATE "C" AND s.state = 'in_progress' AND s.token = tokens[a.number]
        AND fences[a.number] IN (0, s.fence) AND NOT s.contested AND s.last_error_code = '' COLLATE "C"
      FOR UPDATE OF s SKIP LOCKED
  ), settled AS (
    UPDATE idem.slots s SET
      state = 'completed', request = NULL, sealed_key = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
      reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
      expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
      response_head = CASE WHEN h.is_small THEN heads[h.number] END,
      response_body = CASE WHEN h.is_small THEN bodies[h.number] END,
      answer = CASE WHEN NOT h.is_small THEN nextval('idem.answer_numbers') END,
      response_status = idem.status_of(heads[h.number]), body_kept = idem.has_body(heads[h.number]),
      checksum = idem.checksum(s.id, s.fingerprint, heads[h.number], bodies[h.number]),
      upstream_reference = CASE WHEN refs[h.number] = '' COLLATE "C" THEN s.upstream_reference ELSE refs[h.number] END,
      charged = CASE WHEN h.charge = 0 THEN 0
                     WHEN h.is_small THEN 1024      -- idem.record_charge()
                     ELSE 1024 + octet_length(heads[h.number]) + octet_length(bodies[h.number]) END
    FROM held h WHERE s.ctid = h.place
    RETURNING h.number, s.expires_at, s.answer, s.scope, s.charged - h.charge AS more
  )
  SELECT array_agg(d.number), array_agg(d.expires_at), min(d.expires_at), count(d.answer),
         array_agg(d.scope) FILTER (WHERE d.more <> 0), array_agg(d.more) FILTER (WHERE d.more <> 0)
    INTO row.usual, row.until, due_at, larger, whose, more FROM settled d;
  IF whose IS NOT NULL THEN
    PERFORM idem.note_usage(n.scope, 0, sum(n.more)::bigint) FROM unnest(whose, more) n(scope, more) GROUP BY n.scope;
  END IF;
  IF larger > 0 THEN
    INSERT INTO idem.answers
      SELECT s.expires_at, s.answer, heads[d.number], bodies[d.number]
        FROM unnest(row.usual) d(number) JOIN idem.slots s ON s.id = ids[d.number] WHERE s.answer IS NOT NULL;
  END IF;
  RETURN NEXT row;
  IF cardinality(row.usual) = cardinality(ids) THEN
    INSERT INTO idem.expiry_due_batches VALUES (due_at, ids);
    RETURN;
  END IF;
  IF row.usual IS NOT NULL THEN
    INSERT INTO idem.expiry_due_batches
      VALUES (due_at, (SELECT array_agg(ids[d.number]) FROM unnest(row.usual) d(number)));
  END IF;

  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN n = ANY (row.usual);
    reply := idem.owner_one(verbs[n], ids[n], fences[n], tokens[n], leases[n], recovery_points[n], heads[n],
                            bodies[n], refs[n], bases[n]::idem.release_basis, error_codes[n], retry_ins[n],
                            reconcile_ins[n], false);
    is_contradicted := verbs[n] = 'complete' COLLATE "C" AND reply.verdict = 'done'
                       AND EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[n] AND s.contested);
    RETURN NEXT ROW(NULL, NULL, n, reply IS NULL, reply.state, reply.verdict, reply.expires_at,
                    is_contradicted)::idem.numbered_reply;
  END LOOP;
END $$;
