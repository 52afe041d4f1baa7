-- The SQL face for unrestricted roles: with the rights of the caller. These functions check the arguments, so that a
-- wrong one gets IDM05 and no other error. Comparisons name their collation: arguments bring the caller's, and some
-- collations regard two different scopes as equal.

CREATE OR REPLACE FUNCTION idem.must_not_be_nil(attempt uuid) RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF attempt = '00000000-0000-0000-0000-000000000000' THEN
    RAISE EXCEPTION 'attempt: all zeros is the token of no attempt' USING ERRCODE = 'IDM05',
      HINT = 'Pass on Idem-Attempt, or the attempt that reserve() returned.';
  END IF;
END $$;

-- An encrypted answer is none that a service could give to its client.
CREATE OR REPLACE FUNCTION idem.must_be_in_clear(verb text, operation uuid, head bytea) RETURNS void LANGUAGE plpgsql
IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_sealed(head) THEN
    RAISE EXCEPTION '%: the stored answer of % is encrypted', verb, idem.handle(operation) USING ERRCODE = 'IDM10',
      DETAIL = 'The work ran, and the database has no key of its answer.',
      HINT = 'Ask through a gateway or a program that has the encryption.secret_files.';
  END IF;
END $$;

CREATE OR REPLACE FUNCTION idem.reserve_anywhere(
  scope text, operation text, key text, request bytea,
  lease interval DEFAULT '60 seconds', retention interval DEFAULT '24 hours', tombstone interval DEFAULT '720 hours',
  lease_policy idem.lease_policy DEFAULT 'unknown', dispatched boolean DEFAULT true,
  attempt uuid DEFAULT gen_random_uuid(), owner text DEFAULT current_setting('application_name')
) RETURNS idem.outcome LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r idem.reservation;
  o idem.outcome;
  before text;
BEGIN
  IF num_nulls(scope, operation, key, request, lease, retention, tombstone, lease_policy, dispatched, attempt,
               owner) > 0 THEN
    RAISE EXCEPTION 'reserve: no argument may be null' USING ERRCODE = 'IDM05';
  END IF;
  IF octet_length(scope) NOT BETWEEN 1 AND 255 OR octet_length(operation) NOT BETWEEN 1 AND 255
     OR octet_length(key) NOT BETWEEN 1 AND 255 OR octet_length(owner) > 255
     OR lease <= interval '0' OR retention <= interval '0' THEN
    RAISE EXCEPTION 'scope, operation and key have 1 to 255 bytes; an owner has 255 at most; lease and retention are '
      'positive' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.must_not_be_nil(attempt);
  PERFORM idem.be_durable();
  PERFORM idem.must_read_committed();
  before := idem.limit_lock_wait();
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  SELECT i.generation INTO STRICT r.generation FROM idem.identity i;
  -- A key may have a record under each of the names, and only a gateway knows all of them.
  IF EXISTS (SELECT FROM idem.route_names n CROSS JOIN idem.identity i WHERE i.key_scope = 'operation'
               AND ((n.name = operation COLLATE "C" AND n.formerly <> '')
                    OR operation COLLATE "C" = ANY (string_to_array(n.formerly, E'\n')))) THEN
    RAISE EXCEPTION 'the operation % has, or is, a former name: reserve its keys through a gateway while records of '
      'that name live', operation USING ERRCODE = 'IDM05';
  END IF;
  r.id := idem.record_id(scope, operation, key);
  r.scope := scope;
  r.operation := operation;
  r.fingerprint := E'\\x00000000'::bytea || sha256(idem.length_framed(convert_to(operation, 'UTF8')) || request);
  r.token := attempt;
  r.owner := owner;
  r.lease := idem.in_ms(lease, 'lease');
  r.lease_policy := lease_policy;
  r.dispatched := dispatched;
  r.retention := idem.in_ms(retention, 'retention');
  r.tombstone := idem.in_ms(tombstone, 'tombstone');
  o := idem.reserve_one(r, ARRAY[r.fingerprint], NULL, NULL, NULL, true);
  PERFORM set_config('lock_timeout', before, true);
  PERFORM idem.must_be_in_clear('reserve', o.operation, o.response_head);
  RETURN o;
END $$;

CREATE OR REPLACE FUNCTION idem.try_owner_anywhere(verb text, operation uuid, fence bigint, attempt uuid,
  lease interval, recovery_point text, head bytea, body bytea, reference text, basis idem.release_basis,
  error_code text, reconcile_in interval) RETURNS idem.owner_reply LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked text COLLATE "C" := verb;
  reply idem.owner_reply;
  before text;
BEGIN
  IF num_nulls(verb, operation, fence, attempt) > 0 THEN
    RAISE EXCEPTION 'operation, fence and attempt name the attempt; none may be null' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.must_not_be_nil(attempt);
  IF asked = 'complete' THEN PERFORM idem.must_be_storable(head, body); END IF;
  IF (CASE asked
       WHEN 'complete' THEN reference IS NULL
       WHEN 'release' THEN num_nulls(basis, error_code) > 0
       WHEN 'mark_unknown' THEN num_nulls(error_code, reference) > 0
       WHEN 'advance' THEN recovery_point IS NULL
       WHEN 'renew' THEN lease IS NULL OR lease <= interval '0'
       ELSE true
      END) THEN
    RAISE EXCEPTION '%: an argument is null, or a lease is not positive', verb USING ERRCODE = 'IDM05';
  END IF;
  IF greatest(octet_length(recovery_point), octet_length(reference), octet_length(error_code)) > 8192 THEN
    RAISE EXCEPTION '%: recovery_point, reference and error_code have 8192 bytes at most', verb USING ERRCODE = 'IDM05';
  END IF;
  -- The operation may run again, and would send the message a second time.
  IF asked IN ('release', 'mark_unknown')
     AND position(operation::text IN coalesce(current_setting('idem.enqueued', true), '')) > 0 THEN
    RAISE EXCEPTION '%: this transaction sends a message of this operation', verb USING ERRCODE = 'IDM05',
      HINT = 'Roll back, and end the attempt in a transaction of its own.';
  END IF;
  PERFORM idem.be_durable();
  before := idem.limit_lock_wait();
  reply := idem.owner_one(verb, operation, fence, attempt, idem.in_ms(coalesce(lease, '0'), 'lease'), recovery_point,
                          head, body, reference, basis, error_code, 0,
                          CASE WHEN reconcile_in IS NOT NULL THEN idem.in_ms(reconcile_in, 'reconcile_in') END, true);
  PERFORM set_config('lock_timeout', before, true);
  IF reply IS NULL THEN
    RAISE EXCEPTION '%: another transaction holds the record', verb USING ERRCODE = 'IDM04';
  END IF;
  RETURN reply;
END $$;

CREATE OR REPLACE FUNCTION idem.find_anywhere(operation uuid)
RETURNS TABLE (state idem.state, fence bigint, recovery_point text, locked_until timestamptz, created_at timestamptz,
               changed_at timestamptz, expires_at timestamptz, last_error_code text, upstream_reference text,
               response_status integer, response_headers jsonb, response_body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f record;
BEGIN
  SELECT * INTO f FROM idem.find_many(ARRAY[operation]);
  IF NOT FOUND THEN RETURN; END IF;
  IF (f.record).state = 'completed' AND f.response_head IS NULL THEN
    RAISE EXCEPTION 'find: the stored answer of % is damaged', idem.handle(operation) USING ERRCODE = 'IDM08',
      HINT = 'The work ran. Check its effect, and inform an operator.';
  END IF;
  PERFORM idem.must_be_in_clear('find', operation, f.response_head);
  RETURN QUERY
    SELECT (f.record).state, (f.record).fence, (f.record).recovery_point, (f.record).locked_until,
           (f.record).created_at, (f.record).changed_at, (f.record).expires_at, (f.record).last_error_code,
           (f.record).upstream_reference, (f.record).response_status::integer, idem.headers(f.response_head),
           f.response_body;
END $$;

-- How many records have an answer or a request that lies in clear, by scope and operation. Reads all records.
CREATE OR REPLACE FUNCTION idem.rows_in_clear_of(of_scope text)
RETURNS TABLE (scope text, operation text, answers bigint, requests bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT s.scope, s.operation, count(*) FILTER (WHERE c.answer), count(*) FILTER (WHERE c.request)
    FROM idem.slots s LEFT JOIN idem.answers a ON a.expires_at = s.expires_at AND a.number = s.answer
      CROSS JOIN LATERAL (SELECT s.response_status IS NOT NULL AND s.fence <> 0
                                   AND NOT idem.is_sealed(coalesce(s.response_head, a.head)) AS answer,
                                 s.request IS NOT NULL AND NOT idem.is_sealed_request(s.request) AS request) c
    WHERE (of_scope IS NULL OR s.scope = of_scope COLLATE "C") AND (c.answer OR c.request)
    GROUP BY s.scope, s.operation ORDER BY s.scope, s.operation;
END;

CREATE OR REPLACE FUNCTION idem.must(verb text, operation uuid, reply idem.owner_reply) RETURNS idem.owner_reply
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF reply.verdict = 'stale' THEN
    RAISE EXCEPTION '%: this attempt is not the current one of %', verb, idem.handle(operation) USING ERRCODE = 'IDM01',
      DETAIL = 'It is ' || coalesce(reply.state::text, 'gone') || '.', HINT = 'Roll back, and answer from the record.';
  ELSIF reply.verdict = 'settled' THEN
    RAISE EXCEPTION '%: this attempt of % has ended before', verb, idem.handle(operation) USING ERRCODE = 'IDM02',
      DETAIL = 'It is ' || coalesce(reply.state::text, 'gone') || '.', HINT = 'Roll back, and answer from the record.';
  END IF;
  RETURN reply;
END $$;

-- Sends `payload` to `destination` if and only if the caller's transaction commits. To be called before complete().
-- Raises if the attempt has an answer or is not the current one, so that the business rows roll back, too. Returns the
-- message's id.
CREATE OR REPLACE FUNCTION idem.enqueue_anywhere(operation uuid, fence bigint, attempt uuid, destination text,
  type text, payload text, aggregatetype text, aggregateid text, content_type text) RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  at timestamptz := idem.now();
  message uuid := gen_random_uuid();
  before text;
BEGIN
  IF num_nulls(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid, content_type) > 0
     OR octet_length(destination) = 0 OR octet_length(type) = 0 OR octet_length(payload) > 1048576
     OR greatest(octet_length(destination), octet_length(type), octet_length(aggregatetype),
                 octet_length(aggregateid), octet_length(content_type)) > 255 THEN
    RAISE EXCEPTION 'operation, fence, attempt, destination, type and payload are needed, and no argument may be null; '
      'names have 255 bytes at most, a payload 1 MiB' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.must_not_be_nil(attempt);
  PERFORM idem.be_durable();
  before := idem.limit_lock_wait();
  SELECT t.* INTO s FROM idem.slots t WHERE t.id = enqueue_anywhere.operation FOR UPDATE;
  PERFORM idem.must_not_contradict_itself(s);
  IF s.id IS NULL OR NOT idem.is_live(s, at) OR NOT idem.is_same_attempt(s, fence, attempt) THEN
    PERFORM idem.must('enqueue', operation, ROW('stale', idem.state_at(s, at), NULL)::idem.owner_reply);
  END IF;
  IF s.state IN ('completed', 'expired') THEN
    PERFORM idem.must('enqueue', operation, ROW('settled', idem.state_at(s, at), NULL)::idem.owner_reply);
  END IF;
  -- A released or unknown operation may run again, and would send the message a second time.
  IF s.state <> 'in_progress' THEN
    PERFORM idem.must('enqueue', operation, ROW('stale', s.state, NULL)::idem.owner_reply);
  END IF;
  PERFORM idem.put_message(message, operation, destination, aggregatetype, aggregateid, type, payload,
                           content_type);
  IF position(operation::text IN coalesce(current_setting('idem.enqueued', true), '')) = 0 THEN
    PERFORM set_config('idem.enqueued', concat(current_setting('idem.enqueued', true), ' ', operation), true);
  END IF;
  PERFORM set_config('lock_timeout', before, true);
  RETURN message;
END $$;
