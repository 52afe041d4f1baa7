-- The SQL face (protocol.md §17): what a service calls in its own transaction, from any language. Behind a
-- gateway the three of operation, fence and attempt come from the request's fields Idem-Operation,
-- Idem-Fence and Idem-Attempt. What would do nothing raises, so that the caller's rows roll back with it;
-- the functions named try_... answer instead.
--
--   IDM01  stale: another attempt, or nobody, has the record
--   IDM02  settled: this attempt had ended before, and the first ending stands
--   IDM03  the store's identity is of another generation
--   IDM04  held: another transaction has the record; try again
--   IDM05  an argument is wrong
--   IDM08  the record is damaged
--   IDM09  the evidence log is append-only

-- ---- names ----

CREATE FUNCTION idem.xored(value bytea, with_byte integer) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  FOR n IN 0..length(value) - 1 LOOP
    value := set_byte(value, n, get_byte(value, n) # with_byte);
  END LOOP;
  RETURN value;
END $$;

-- HMAC-SHA-256 (RFC 2104) for keys of at most 64 bytes.
CREATE FUNCTION idem.keyed_digest(key bytea, message bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  padded bytea := key || decode(repeat('00', 64 - length(key)), 'hex');
BEGIN
  RETURN sha256(idem.xored(padded, 92) || sha256(idem.xored(padded, 54) || message));
END $$;

CREATE FUNCTION idem.length_framed(part bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN idem.little_endian(length(part), 8) || part;

-- The handle under which the gateway and this function find the record of a key.
CREATE FUNCTION idem.record_id(scope text, operation text, key text) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
DECLARE
  i idem.identity;
  newest text;
BEGIN
  SELECT * INTO STRICT i FROM idem.identity;
  SELECT d.id INTO newest FROM idem.digest_secrets d ORDER BY d.generation DESC LIMIT 1;
  IF newest <> left(encode(idem.keyed_digest(idem.keyed_digest(i.secret, 'idem secret id'), ''), 'hex'), 16) THEN
    RAISE EXCEPTION 'records are named under a secret that this store does not hold' USING ERRCODE = 'IDM05',
      HINT = 'Take the handle from Idem-Operation, or start the gateways without --secret-file.';
  END IF;
  RETURN encode(substr(idem.keyed_digest(idem.keyed_digest(i.secret, 'idem record id'),
      idem.length_framed(convert_to(scope, 'UTF8'))
      || idem.length_framed(CASE i.key_scope WHEN 'tenant' THEN '' ELSE convert_to(operation, 'UTF8') END)
      || idem.length_framed(convert_to(key, 'UTF8'))), 1, 16), 'hex')::uuid;
END $$;

CREATE FUNCTION idem.in_ms(length interval, name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  ms bigint := (extract(epoch FROM length) * 1000)::bigint;
BEGIN
  IF ms IS NULL OR ms < 0 OR ms > 3153600000000 THEN
    RAISE EXCEPTION '%: % is no length of time of at most 100 years', name, length USING ERRCODE = 'IDM05';
  END IF;
  RETURN ms;
END $$;

-- ---- the verbs ----

-- Wins the right to execute, or says who has it and what came of it. `request` is what is asked, to tell a
-- retry from another request under the same key: its bytes, or a digest of them. Committed before the work
-- starts, it is durable whatever becomes of the work; in the transaction of the work, all is one.
CREATE FUNCTION idem.reserve(
  scope text, operation text, key text, request bytea,
  lease interval DEFAULT '60 seconds', retention interval DEFAULT '24 hours', tombstone interval DEFAULT '720 hours',
  lease_policy idem.lease_policy DEFAULT 'unknown', dispatched boolean DEFAULT true,
  attempt uuid DEFAULT gen_random_uuid(), owner text DEFAULT current_setting('application_name')
) RETURNS idem.outcome LANGUAGE plpgsql AS $$
DECLARE
  r idem.reservation;
  o idem.outcome;
  before text;
BEGIN
  IF scope = '' OR key = '' OR operation = '' OR request IS NULL OR lease <= interval '0' OR retention <= interval '0'
     OR octet_length(key) > 255 OR octet_length(scope) > 255 OR octet_length(operation) > 255 THEN
    RAISE EXCEPTION 'scope, operation and key are 1 to 255 bytes; lease and retention are positive'
      USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.be_durable();
  PERFORM idem.see_what_is_committed();
  before := idem.wait_a_while();
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  SELECT i.generation INTO STRICT r.generation FROM idem.identity i;
  -- A key may lie under each of the names, and only a gateway knows all that it would have been stored with.
  IF EXISTS (SELECT FROM idem.route_names n CROSS JOIN idem.identity i WHERE i.key_scope = 'operation'
               AND ((n.name = operation AND n.formerly <> '') OR operation = ANY (string_to_array(n.formerly, E'\n')))) THEN
    RAISE EXCEPTION 'the operation % has, or is, a former name: reserve its keys through a gateway until that is over',
      operation USING ERRCODE = 'IDM05';
  END IF;
  r.id := idem.record_id(scope, operation, key);
  r.scope := scope;
  r.operation := operation;
  r.fingerprint := '\x00000000'::bytea || sha256(idem.length_framed(convert_to(operation, 'UTF8')) || request);
  r.token := attempt;
  r.owner := owner;
  r.lease := idem.in_ms(lease, 'lease');
  r.lease_policy := lease_policy;
  r.dispatched := dispatched;
  r.retention := idem.in_ms(retention, 'retention');
  r.tombstone := idem.in_ms(tombstone, 'tombstone');
  o := idem.reserve_one(r, ARRAY[r.fingerprint], NULL, NULL, NULL, true);
  PERFORM set_config('lock_timeout', before, true);
  RETURN o;
END $$;

CREATE FUNCTION idem.try_owner(verb text, operation uuid, fence bigint, attempt uuid, lease interval,
  recovery_point text, head bytea, body bytea, reference text, basis idem.release_basis, error_code text,
  reconcile_in interval) RETURNS idem.owner_reply LANGUAGE plpgsql AS $$
DECLARE
  reply idem.owner_reply;
  before text;
BEGIN
  IF operation IS NULL OR fence IS NULL OR attempt IS NULL THEN
    RAISE EXCEPTION 'operation, fence and attempt name the attempt; none may be null' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.be_durable();
  before := idem.wait_a_while();
  reply := idem.owner_one(verb, operation, fence, attempt, idem.in_ms(coalesce(lease, '0'), 'lease'), recovery_point,
                          head, body, reference, basis, error_code, 0,
                          CASE WHEN reconcile_in IS NOT NULL THEN idem.in_ms(reconcile_in, 'reconcile_in') END, true);
  PERFORM set_config('lock_timeout', before, true);
  IF reply IS NULL THEN
    RAISE EXCEPTION '%: another transaction holds the record', verb USING ERRCODE = 'IDM04';
  END IF;
  RETURN reply;
END $$;

CREATE FUNCTION idem.must(verb text, operation uuid, reply idem.owner_reply) RETURNS idem.owner_reply
LANGUAGE plpgsql AS $$
BEGIN
  IF reply.verdict = 'stale' THEN
    RAISE EXCEPTION '%: another attempt, or nobody, has %', verb, idem.handle(operation) USING ERRCODE = 'IDM01',
      DETAIL = 'It is ' || coalesce(reply.state::text, 'gone') || '.', HINT = 'Roll back, and answer from the record.';
  ELSIF reply.verdict = 'settled' THEN
    RAISE EXCEPTION '%: this attempt at % had ended before', verb, idem.handle(operation) USING ERRCODE = 'IDM02',
      DETAIL = 'It is ' || coalesce(reply.state::text, 'gone') || '.', HINT = 'Roll back, and answer from the record.';
  END IF;
  RETURN reply;
END $$;

-- Ends the attempt with an answer, which every retry is given from then on.
CREATE FUNCTION idem.try_complete(operation uuid, fence bigint, attempt uuid, status integer, headers jsonb DEFAULT '[]',
  body bytea DEFAULT '', reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.try_owner('complete', operation, fence, attempt, NULL, NULL, idem.answer_head(status, headers, true), body,
                        reference, NULL, NULL, NULL)
$$;
CREATE FUNCTION idem.complete(operation uuid, fence bigint, attempt uuid, status integer, headers jsonb DEFAULT '[]',
  body bytea DEFAULT '', reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.must('complete', operation,
                   idem.try_complete(operation, fence, attempt, status, headers, body, reference))
$$;

-- Ends the attempt as not executed: a retry runs afresh.
CREATE FUNCTION idem.try_release(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  basis idem.release_basis DEFAULT 'proven') RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.try_owner('release', operation, fence, attempt, NULL, NULL, NULL, NULL, NULL, basis, error_code, NULL)
$$;
CREATE FUNCTION idem.release(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  basis idem.release_basis DEFAULT 'proven') RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.must('release', operation, idem.try_release(operation, fence, attempt, error_code, basis))
$$;

-- Ends the attempt without knowing whether the work ran.
CREATE FUNCTION idem.try_mark_unknown(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  reconcile_in interval DEFAULT NULL, reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.try_owner('mark_unknown', operation, fence, attempt, NULL, NULL, NULL, NULL, reference, NULL, error_code,
                        reconcile_in)
$$;
CREATE FUNCTION idem.mark_unknown(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  reconcile_in interval DEFAULT NULL, reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.must('mark_unknown', operation,
                   idem.try_mark_unknown(operation, fence, attempt, error_code, reconcile_in, reference))
$$;

-- Notes that a phase committed (§16), in the transaction of that phase.
CREATE FUNCTION idem.try_advance(operation uuid, fence bigint, attempt uuid, recovery_point text)
RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.try_owner('advance', operation, fence, attempt, NULL, recovery_point, NULL, NULL, NULL, NULL, NULL, NULL)
$$;
CREATE FUNCTION idem.advance(operation uuid, fence bigint, attempt uuid, recovery_point text)
RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.must('advance', operation, idem.try_advance(operation, fence, attempt, recovery_point))
$$;

-- Extends the lease to `lease` from now.
CREATE FUNCTION idem.try_renew(operation uuid, fence bigint, attempt uuid, lease interval DEFAULT '60 seconds')
RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.try_owner('renew', operation, fence, attempt, lease, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
$$;
CREATE FUNCTION idem.renew(operation uuid, fence bigint, attempt uuid, lease interval DEFAULT '60 seconds')
RETURNS idem.owner_reply LANGUAGE sql AS $$
  SELECT idem.must('renew', operation, idem.try_renew(operation, fence, attempt, lease))
$$;

-- The record as it reads now, with its stored answer; no row: there is none.
CREATE FUNCTION idem.find(operation uuid)
RETURNS TABLE (state idem.state, fence bigint, recovery_point text, locked_until timestamptz, created_at timestamptz,
               changed_at timestamptz, expires_at timestamptz, last_error_code text, upstream_reference text,
               response_status integer, response_headers jsonb, response_body bytea) LANGUAGE sql AS $$
  SELECT (f.record).state, (f.record).fence, (f.record).recovery_point, (f.record).locked_until,
         (f.record).created_at, (f.record).changed_at, (f.record).expires_at, (f.record).last_error_code,
         (f.record).upstream_reference, (f.record).response_status, idem.headers(f.response_head), f.response_body
  FROM idem.find_many(ARRAY[operation]) f
$$;
