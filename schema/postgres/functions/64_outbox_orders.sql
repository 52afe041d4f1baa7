-- Operators' orders on messages, and the end of their retention.

-- Sends up to `most` dead letters again, one every `spacing` ms; a NULL matches any. A message that may have arrived is
-- sent only if its destination recognises a repeat, or if `nothing_there`: the operator has looked there. With
-- `dry_run` nothing changes. The verdict is 'redriven' or 'may_have_arrived'.
CREATE OR REPLACE FUNCTION idem.redrive(of_destination text, of_message uuid, of_type text, most bigint, spacing bigint,
  nothing_there boolean, dry_run boolean, why text)
RETURNS TABLE (id text, destination text, type text, verdict text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT o.seq, o.ambiguous AND NOT nothing_there AND coalesce(o.repeat_until <= at, true) AS is_refused
      FROM idem.outbox o
      WHERE o.state = 'dead' AND (of_destination IS NULL OR o.destination = of_destination COLLATE "C")
        AND (of_message IS NULL OR o.id = of_message) AND (of_type IS NULL OR o.type = of_type COLLATE "C")
      ORDER BY o.seq LIMIT most FOR UPDATE OF o SKIP LOCKED
  ), spaced AS (
    SELECT c.*, row_number() OVER (PARTITION BY c.is_refused ORDER BY c.seq) - 1 AS place FROM chosen c
  ), changed AS (
    UPDATE idem.outbox o SET
      state = 'waiting', attempts = 0, due_at = at + idem.ms((s.place * spacing)::bigint), ended_at = NULL,
      ambiguous = o.ambiguous AND NOT nothing_there,
      history = o.history || jsonb_build_object('at', round(extract(epoch FROM at) * 1000)::bigint,
        'how', CASE WHEN nothing_there THEN 'redriven: nothing was there' ELSE 'redriven' END, 'why', why)
    FROM spaced s WHERE o.seq = s.seq AND NOT s.is_refused AND NOT dry_run
    RETURNING o.seq
  )
  SELECT encode(uuid_send(o.id), 'hex'), o.destination, o.type,
         CASE WHEN s.is_refused THEN 'may_have_arrived' ELSE 'redriven' END
    FROM spaced s JOIN idem.outbox o ON o.seq = s.seq LEFT JOIN changed c ON c.seq = s.seq ORDER BY s.seq;
END $$;

-- Gives up dead letters, with a reason; the rows stay until they are reaped.
CREATE OR REPLACE FUNCTION idem.discard(of_destination text, of_message uuid, of_type text, most bigint,
  dry_run boolean, why text)
RETURNS TABLE (id text, destination text, type text, verdict text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT o.seq FROM idem.outbox o
      WHERE o.state = 'dead' AND (of_destination IS NULL OR o.destination = of_destination COLLATE "C")
        AND (of_message IS NULL OR o.id = of_message) AND (of_type IS NULL OR o.type = of_type COLLATE "C")
      ORDER BY o.seq LIMIT most FOR UPDATE OF o SKIP LOCKED
  ), changed AS (
    UPDATE idem.outbox o SET state = 'discarded', ended_at = at,
      history = o.history || jsonb_build_object('at', round(extract(epoch FROM at) * 1000)::bigint,
        'how', 'discarded', 'why', why)
    FROM chosen c WHERE o.seq = c.seq AND NOT dry_run RETURNING o.seq
  )
  SELECT encode(uuid_send(o.id), 'hex'), o.destination, o.type, 'discarded'::text
    FROM chosen c JOIN idem.outbox o ON o.seq = c.seq LEFT JOIN changed d ON d.seq = c.seq ORDER BY c.seq;
END $$;

-- Deletes up to `most` messages that were delivered or discarded longer than `retention` ms ago.
CREATE OR REPLACE FUNCTION idem.reap_messages(most bigint, retention bigint) RETURNS SETOF integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  until timestamptz := idem.now() - idem.ms(retention);
BEGIN
  RETURN QUERY
  DELETE FROM idem.outbox o WHERE o.seq IN (
    SELECT e.seq FROM idem.outbox e
      WHERE (e.state = 'delivered' AND e.ended_at < until) OR (e.state = 'discarded' AND e.ended_at < until)
      LIMIT most FOR UPDATE SKIP LOCKED)
  RETURNING 1;
END $$;
