-- Work that is split into phases (protocol.md §16).

-- With the reserve, in its transaction: begins, or goes on with what is there. `record_point`: of the record, empty
-- where it is new. `is_noted`: of the first phase, that each call is noted before it is made, or that there is none.
-- The caller compares the point that it gets with the record's: they are the same, or something was lost.
CREATE OR REPLACE FUNCTION idem.open_flow(flow uuid, of_operation text, new_input bytea, lease bigint, by_token uuid,
                               is_noted bigint, first_phase text, record_point text)
RETURNS TABLE (point text, point_age bigint, attempts integer, quiet_for bigint, next text, input bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  -- Of a record that is new, what another one left under its name before any phase committed is nothing.
  IF record_point = '' THEN
    DELETE FROM idem.flows f WHERE f.id = flow AND f.point = 'started' AND f.token <> by_token;
  END IF;
  RETURN QUERY
  INSERT INTO idem.flows AS f (id, operation, input, point, next, point_at, attempts, due_at, token, nothing_open,
                               no_call_in_flight_since)
    -- A record that has come further without this row was released by an operator after its end: what followed may
    -- have been sent.
    VALUES (flow, of_operation, new_input, CASE record_point WHEN '' THEN 'started' ELSE record_point END,
            CASE record_point WHEN '' THEN first_phase ELSE '' END, at, 1, at + idem.ms(lease), by_token,
            record_point = '' AND is_noted <> 0, CASE WHEN record_point <> '' THEN at END)
  ON CONFLICT (id) DO UPDATE SET
    -- Asked again by the attempt that has it, whose first answer was lost: nothing has happened since.
    attempts = f.attempts + CASE WHEN f.token = by_token THEN 0 ELSE 1 END,
    due_at = excluded.due_at, token = by_token,
    nothing_open = f.nothing_open AND f.token = by_token,
    no_call_in_flight_since = CASE WHEN f.token = by_token THEN f.no_call_in_flight_since WHEN f.nothing_open THEN NULL
                  ELSE coalesce(f.no_call_in_flight_since, at) END
  RETURNING f.point, idem.ms_until(at, f.point_at), f.attempts, idem.ms_until(at, f.no_call_in_flight_since), f.next, f.input;
END $$;

-- In the phase's own transaction; `is_noted` and `next_phase` are of the one behind it. No row: the point was another.
CREATE OR REPLACE FUNCTION idem.pass_phase(flow uuid, before text, now_at text, lease bigint, is_noted bigint, next_phase text)
RETURNS SETOF integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  RETURN QUERY
  UPDATE idem.flows f SET point = now_at, next = next_phase, point_at = at, no_call_in_flight_since = NULL,
      due_at = at + idem.ms(lease), nothing_open = is_noted <> 0
    WHERE f.id = flow AND f.point = before COLLATE "C" RETURNING 1;
END $$;

-- Before a call is made, or made again: from here on it may be on its way.
CREATE OR REPLACE FUNCTION idem.note_call(flow uuid, by_token uuid, by_phase text) RETURNS SETOF integer LANGUAGE plpgsql
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
