-- More statements of relays, completers and operators. The program's statements name functions of this schema only: a
-- service's session finds other names by a search path that others may change.

CREATE OR REPLACE FUNCTION idem.list_messages(of_state text, of_destination text, after bigint, most bigint)
RETURNS TABLE (seq bigint, id text, operation text, destination text, type text, aggregatetype text, aggregateid text,
  state text, created_at bigint, due_at bigint, attempts integer, in_flight integer, ambiguous integer, reference text,
  last_error text, ended_at bigint) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT o.seq, encode(uuid_send(o.id), 'hex'), encode(uuid_send(o.operation), 'hex'), o.destination, o.type,
         o.aggregatetype, o.aggregateid, o.state::text, round(extract(epoch FROM o.created_at) * 1000)::bigint,
         round(extract(epoch FROM o.due_at) * 1000)::bigint, o.attempts, o.in_flight::integer, o.ambiguous::integer,
         o.reference, o.last_error, round(extract(epoch FROM o.ended_at) * 1000)::bigint
    FROM idem.outbox o
    WHERE (of_state COLLATE "C" = '' OR o.state::text = of_state COLLATE "C")
      AND (of_destination COLLATE "C" = '' OR o.destination = of_destination COLLATE "C") AND o.seq > after
    ORDER BY o.seq LIMIT most;
END;

CREATE OR REPLACE FUNCTION idem.find_message(message uuid)
RETURNS TABLE (seq bigint, id text, operation text, destination text, type text, aggregatetype text, aggregateid text,
  state text, created_at bigint, due_at bigint, attempts integer, in_flight integer, ambiguous integer, reference text,
  last_error text, ended_at bigint, content_type text, payload text, history text) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT m.*, o.content_type, o.payload, o.history::text
    FROM idem.outbox o CROSS JOIN LATERAL idem.list_messages('', '', o.seq - 1, 1) m
    WHERE o.id = message;
END;

-- Those of one record.
CREATE OR REPLACE FUNCTION idem.messages_of_record(record uuid, of_state text, of_destination text, after bigint,
  most bigint)
RETURNS TABLE (seq bigint, id text, operation text, destination text, type text, aggregatetype text, aggregateid text,
  state text, created_at bigint, due_at bigint, attempts integer, in_flight integer, ambiguous integer, reference text,
  last_error text, ended_at bigint) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT m.*
    FROM idem.outbox o CROSS JOIN LATERAL idem.list_messages(of_state, of_destination, o.seq - 1, 1) m
    WHERE o.operation = record AND o.seq > after AND m.seq = o.seq
    ORDER BY m.seq LIMIT most;
END;

-- Makes a waiting message due now. No row: there is none, or a relay has it.
CREATE OR REPLACE FUNCTION idem.hasten_message(message uuid) RETURNS SETOF integer LANGUAGE sql
BEGIN ATOMIC
  UPDATE idem.outbox SET due_at = idem.now() WHERE id = message AND state = 'waiting' AND NOT claimed RETURNING 1;
END;

CREATE OR REPLACE FUNCTION idem.count_messages()
RETURNS TABLE (destination text, state text, messages bigint, age bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT o.destination, o.state::text, count(*), idem.ms_until(idem.now(), min(o.created_at))
    FROM idem.outbox o WHERE o.state = 'waiting' GROUP BY o.destination, o.state
  UNION ALL
  SELECT o.destination, o.state::text, count(*), idem.ms_until(idem.now(), min(o.created_at))
    FROM idem.outbox o WHERE o.state = 'dead' GROUP BY o.destination, o.state
  ORDER BY 1, 2;
END;

CREATE OR REPLACE FUNCTION idem.find_point(flow uuid) RETURNS SETOF text LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT f.point FROM idem.flows f WHERE f.id = flow;
END;

-- Ends an attempt's turn without a result. `anew`: attempts count from 0 again; otherwise this one does not count.
CREATE OR REPLACE FUNCTION idem.rest_flow(flow uuid, by_token uuid, delay bigint, anew bigint) RETURNS SETOF integer
LANGUAGE sql
BEGIN ATOMIC
  UPDATE idem.flows SET nothing_open = true, due_at = idem.now() + idem.ms(delay),
      attempts = CASE WHEN anew <> 0 THEN 0 ELSE greatest(attempts - 1, 0) END
    WHERE id = flow AND token = by_token RETURNING 1;
END;

CREATE OR REPLACE FUNCTION idem.close_flow(flow uuid, by_token uuid) RETURNS SETOF integer LANGUAGE sql
BEGIN ATOMIC
  DELETE FROM idem.flows WHERE id = flow AND token = by_token RETURNING 1;
END;

CREATE OR REPLACE FUNCTION idem.postpone_flow(flow uuid, delay bigint) RETURNS SETOF integer LANGUAGE sql
BEGIN ATOMIC
  UPDATE idem.flows SET due_at = idem.now() + idem.ms(delay) WHERE id = flow RETURNING 1;
END;

-- Of an attempt whose rows may be committed without its completion: no call can end the record by its token any more.
CREATE OR REPLACE FUNCTION idem.forget_attempt(of_record uuid, by_token uuid) RETURNS SETOF integer LANGUAGE sql
BEGIN ATOMIC
  UPDATE idem.slots SET token = idem.nil_uuid()
    WHERE id = of_record AND token = by_token AND state = 'unknown' RETURNING 1;
END;
