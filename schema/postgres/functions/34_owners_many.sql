-- Owners' verbs, as the store sends them: in batches.

-- idem.owners_many() and idem.reserve_many() number their calls and look values up in the arrays. That costs less than
-- to unnest a dozen arrays side by side.

-- The answers of completed calls (their numbers) that are too large for their records.
CREATE OR REPLACE FUNCTION idem.insert_large_answers(ids uuid[], completed integer[], heads bytea[], bodies bytea[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.answers
    SELECT s.expires_at, s.answer, heads[c.number], bodies[c.number]
      FROM unnest(completed) c(number) JOIN idem.slots s ON s.id = ids[c.number] WHERE s.answer IS NOT NULL;
END $$;

-- Up to 256 owners' verbs, each of another record. Arrays that only other verbs than complete use may be empty where
-- all complete. Completions of running attempts, nearly all there is, are one statement. It skips locked rows, so their
-- order does not matter.
-- A plan that was made while the table was new has no statistics and is kept: so always by index.
CREATE OR REPLACE FUNCTION idem.owners_many(
  verbs text[], ids uuid[], fences bigint[], tokens uuid[], leases bigint[], recovery_points text[], heads bytea[],
  bodies bytea[], refs text[], bases text[], error_codes text[], retry_ins bigint[], reconcile_ins bigint[]
) RETURNS SETOF idem.numbered_reply LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  at timestamptz := idem.now();
  due_at timestamptz;
  large integer;
  scopes text[];
  growths bigint[];
  reply idem.owner_reply;
  first_row idem.numbered_reply;
  is_contradicted boolean;
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM idem.be_durable(); END IF;
  WITH held AS MATERIALIZED (
    SELECT s.ctid AS place, a.number, s.charged AS charge,
           idem.is_small(heads[a.number], bodies[a.number]) IS TRUE AS is_small
      FROM generate_series(1, cardinality(ids)) a(number) JOIN idem.slots s ON s.id = ids[a.number]
      WHERE verbs[a.number] = 'complete' COLLATE "C" AND s.state = 'in_progress' AND s.token = tokens[a.number]
        AND fences[a.number] IN (0, s.fence) AND NOT s.contested AND s.last_error_code = '' COLLATE "C"
        AND s.response_status IS NULL FOR UPDATE OF s SKIP LOCKED
  ), settled AS (
    UPDATE idem.slots s SET
      state = 'completed', request = NULL, sealed_key = NULL, release_basis = NULL, last_error_code = '',
      reconcile_after = NULL, reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
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
    RETURNING h.number, s.expires_at, s.answer, s.scope, s.charged - h.charge AS growth
  )
  SELECT array_agg(d.number), array_agg(d.expires_at), min(d.expires_at), count(d.answer),
         array_agg(d.scope) FILTER (WHERE d.growth <> 0), array_agg(d.growth) FILTER (WHERE d.growth <> 0)
    INTO first_row.usual, first_row.until, due_at, large, scopes, growths FROM settled d;
  IF scopes IS NOT NULL THEN
    PERFORM idem.add_usage(n.scope, 0, sum(n.growth)::bigint)
      FROM unnest(scopes, growths) n(scope, growth) GROUP BY n.scope;
  END IF;
  IF large > 0 THEN PERFORM idem.insert_large_answers(ids, first_row.usual, heads, bodies); END IF;
  RETURN NEXT first_row;
  IF cardinality(first_row.usual) = cardinality(ids) THEN
    INSERT INTO idem.expiry_due_batches VALUES (due_at, ids);
    RETURN;
  END IF;
  IF first_row.usual IS NOT NULL THEN
    INSERT INTO idem.expiry_due_batches
      VALUES (due_at, (SELECT array_agg(ids[d.number]) FROM unnest(first_row.usual) d(number)));
  END IF;

  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN n = ANY (first_row.usual);
    reply := idem.owner_one(verbs[n], ids[n], fences[n], tokens[n], leases[n], recovery_points[n], heads[n],
                            bodies[n], refs[n], bases[n]::idem.release_basis, error_codes[n], retry_ins[n],
                            reconcile_ins[n], false);
    is_contradicted := verbs[n] = 'complete' COLLATE "C" AND reply.verdict = 'done'
                       AND EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[n] AND s.contested);
    RETURN NEXT ROW(NULL, NULL, n, reply IS NULL, reply.state, reply.verdict, reply.expires_at,
                    is_contradicted)::idem.numbered_reply;
  END LOOP;
END $$;
