-- Work that is split into phases (protocol.md §16).

-- In the reserve's transaction: begins a flow, or continues it. `record_point`: the record's recovery point, empty if
-- it is new. `is_noted`: the first phase notes each call before it makes it, or makes none. The caller compares the
-- returned point with the record's: if they differ, something was lost.
CREATE OR REPLACE FUNCTION idem.open_flow(flow uuid, of_operation text, new_input bytea, lease bigint, by_token uuid,
                               is_noted bigint, first_phase text, record_point text)
RETURNS TABLE (point text, point_age bigint, attempts integer, quiet_for bigint, next text, input bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  -- For a new record, a row that an earlier record left before its first phase committed means nothing.
  IF record_point = '' THEN
    DELETE FROM idem.flows f WHERE f.id = flow AND f.point = 'started' AND f.token <> by_token;
  END IF;
  RETURN QUERY
  INSERT INTO idem.flows AS f (id, operation, input, point, next, point_at, attempts, due_at, token, nothing_open,
                               no_call_in_flight_since)
    -- A record with a later point and without this row was released by an operator after its end: the next phase's
    -- call may have been sent.
    VALUES (flow, of_operation, new_input, CASE record_point WHEN '' THEN 'started' ELSE record_point END,
            CASE record_point WHEN '' THEN first_phase ELSE '' END, at, 1, at + idem.ms(lease), by_token,
            record_point = '' AND is_noted <> 0, CASE WHEN record_point <> '' THEN at END)
  ON CONFLICT (id) DO UPDATE SET
    -- The attempt that has the flow repeats a call whose reply was lost: nothing has happened since.
    attempts = f.attempts + CASE WHEN f.token = by_token THEN 0 ELSE 1 END,
    due_at = excluded.due_at, token = by_token,
    nothing_open = f.nothing_open AND f.token = by_token,
    no_call_in_flight_since = CASE WHEN f.token = by_token THEN f.no_call_in_flight_since
      WHEN f.nothing_open THEN NULL ELSE coalesce(f.no_call_in_flight_since, at) END
  RETURNING f.point, idem.ms_until(at, f.point_at), f.attempts, idem.ms_until(at, f.no_call_in_flight_since), f.next,
    f.input;
END $$;

-- In the phase's own transaction; `is_noted` belongs to `next_phase`. No row: the flow was at another point.
CREATE OR REPLACE FUNCTION idem.pass_phase(flow uuid, before text, now_at text, lease bigint, is_noted bigint,
  next_phase text)
RETURNS SETOF integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  RETURN QUERY
  UPDATE idem.flows f SET point = now_at, next = next_phase, point_at = at, no_call_in_flight_since = NULL,
      due_at = at + idem.ms(lease), nothing_open = is_noted <> 0
    WHERE f.id = flow AND f.point = before COLLATE "C" RETURNING 1;
END $$;

-- Before a call, or its repeat: from here on it may be in flight.
CREATE OR REPLACE FUNCTION idem.note_call(flow uuid, by_token uuid, by_phase text) RETURNS SETOF integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY UPDATE idem.flows f SET no_call_in_flight_since = NULL, nothing_open = false, next = by_phase
    WHERE f.id = flow AND f.token = by_token RETURNING 1;
END $$;

CREATE OR REPLACE FUNCTION idem.due_flows(of_operation text, most bigint)
RETURNS TABLE (id text, input bytea, point text, token text) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT encode(uuid_send(f.id), 'hex'), f.input, f.point, encode(uuid_send(f.token), 'hex') FROM idem.flows f
    WHERE f.operation = of_operation COLLATE "C" AND f.due_at <= idem.now() ORDER BY f.due_at LIMIT most;
END;
