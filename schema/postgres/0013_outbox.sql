-- Messages that a service sends because of what it did (protocol.md §18). A row is written in the business
-- transaction, so it is there if and only if the business rows are. The first columns have the names that Debezium's
-- outbox router looks for.
--
-- A relay claims what is due, sends it, and notes under the claim's fence what came of it. Nothing here follows a
-- position in the table: what is not delivered yet is found by its state, also where it was committed late.

CREATE TYPE idem.message_state AS ENUM ('waiting', 'delivered', 'dead', 'discarded');

CREATE TABLE idem.outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL UNIQUE,               -- what the receiver tells a repeated delivery by
  aggregatetype text COLLATE "C" NOT NULL,
  aggregateid text COLLATE "C" NOT NULL, -- with its type: messages of one leave in their order; empty: in any
  type text NOT NULL,
  payload text NOT NULL,
  content_type text NOT NULL,
  destination text COLLATE "C" NOT NULL, -- its name in the relays' configuration
  operation uuid NOT NULL,               -- the record whose work sends it
  state idem.message_state NOT NULL DEFAULT 'waiting',
  created_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,           -- waiting: not before; in flight: when the claim ends
  attempts integer NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,       -- of the last claim: an older one notes nothing any more
  claimed boolean NOT NULL DEFAULT false, -- until due_at a relay has it
  in_flight boolean NOT NULL DEFAULT false, -- since the last note it may have been sent
  ambiguous boolean NOT NULL DEFAULT false, -- an attempt may have arrived; nobody knows
  quiet_since timestamptz,               -- ambiguous: since when none of them can be under way any more
  first_at timestamptz,                  -- ambiguous: none of them arrived before this
  repeat_until timestamptz,              -- until when the destination takes a repeat for what it is
  reference text NOT NULL DEFAULT '',    -- what the receiver calls it; noted with the delivery, never after it
  last_error text NOT NULL DEFAULT '',
  history jsonb NOT NULL DEFAULT '[]',   -- of each attempt and decision: at, how, why
  ended_at timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX outbox_due ON idem.outbox (destination, due_at, seq) WHERE state = 'waiting';
CREATE INDEX outbox_in_order ON idem.outbox (destination, aggregatetype, aggregateid, seq)
  WHERE state = 'waiting' AND aggregateid <> '';
CREATE INDEX outbox_ended ON idem.outbox (state, ended_at, seq) WHERE state <> 'waiting';

-- The number is taken under the aggregate's lock, which ends after the row can be seen: so of two messages of one
-- aggregate the one with the lower number is never the one that is seen later.
CREATE FUNCTION idem.put_message(message uuid, operation uuid, destination text, aggregatetype text, aggregateid text,
  type text, payload text, content_type text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz;
BEGIN
  IF aggregateid <> '' THEN
    PERFORM pg_advisory_xact_lock(1229210958, hashtext(destination || E'\n' || aggregatetype || E'\n' || aggregateid));
  END IF;
  at := idem.now();
  INSERT INTO idem.outbox (id, aggregatetype, aggregateid, type, payload, content_type, destination, operation,
                           created_at, due_at)
    VALUES (message, put_message.aggregatetype, put_message.aggregateid, put_message.type, put_message.payload,
            put_message.content_type, put_message.destination, put_message.operation, at, at);
END $$;

-- ---- the face ----

-- Sends `payload` to `destination` if and only if the transaction that calls this commits. Called before complete();
-- raises when the attempt has an answer or is not the current one any more, so that the business rows roll back, too.
-- The message's id.
CREATE FUNCTION idem.enqueue_anywhere(operation uuid, fence bigint, attempt uuid, destination text, type text,
  payload text, aggregatetype text, aggregateid text, content_type text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz := idem.now();
  message uuid := gen_random_uuid();
  before text;
BEGIN
  IF operation IS NULL OR fence IS NULL OR attempt IS NULL OR coalesce(destination, '') = '' OR coalesce(type, '') = ''
     OR payload IS NULL OR octet_length(payload) > 1048576
     OR greatest(octet_length(destination), octet_length(type), octet_length(aggregatetype),
                 octet_length(aggregateid), octet_length(content_type)) > 255 THEN
    RAISE EXCEPTION 'operation, fence, attempt, destination, type and payload are needed; names have 255 bytes at '
      'most, a payload 1 MiB' USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.be_durable();
  before := idem.wait_a_while();
  SELECT t.* INTO s FROM idem.slots t WHERE t.id = enqueue_anywhere.operation FOR UPDATE;
  IF s.id IS NULL OR NOT idem.is_live(s, at) OR NOT idem.is_same_attempt(s, fence, attempt) THEN
    PERFORM idem.must('enqueue', operation, ROW('stale', idem.state_at(s, at), NULL)::idem.owner_reply);
  END IF;
  IF s.state IN ('completed', 'expired') THEN
    PERFORM idem.must('enqueue', operation, ROW('settled', idem.state_at(s, at), NULL)::idem.owner_reply);
  END IF;
  PERFORM idem.put_message(message, operation, destination, coalesce(aggregatetype, ''), coalesce(aggregateid, ''), type,
                           payload, coalesce(content_type, 'application/json'));
  PERFORM set_config('lock_timeout', before, true);
  RETURN message;
END $$;

CREATE FUNCTION idem.enqueue_in_scope(operation uuid, fence bigint, attempt uuid, destination text, type text,
  payload text, aggregatetype text, aggregateid text, content_type text) RETURNS uuid LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := idem.scope_of_caller();
BEGIN
  IF NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = enqueue_in_scope.operation AND s.scope = mine) THEN
    PERFORM idem.must('enqueue', operation, ROW('stale', NULL, NULL)::idem.owner_reply);
  END IF;
  RETURN idem.enqueue_anywhere(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid,
                               content_type);
END $$;
REVOKE ALL ON FUNCTION idem.enqueue_in_scope(uuid, bigint, uuid, text, text, text, text, text, text) FROM PUBLIC;

CREATE FUNCTION idem.enqueue(operation uuid, fence bigint, attempt uuid, destination text, type text, payload text,
  aggregatetype text DEFAULT '', aggregateid text DEFAULT '', content_type text DEFAULT 'application/json')
RETURNS uuid LANGUAGE plpgsql AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN idem.enqueue_in_scope(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid,
                                 content_type);
  END IF;
  RETURN idem.enqueue_anywhere(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid,
                               content_type);
END $$;

-- The same, but answers null instead of raising when the attempt is not the current one: then nothing was sent, and
-- the caller must roll back by itself.
CREATE FUNCTION idem.try_enqueue(operation uuid, fence bigint, attempt uuid, destination text, type text, payload text,
  aggregatetype text DEFAULT '', aggregateid text DEFAULT '', content_type text DEFAULT 'application/json')
RETURNS uuid LANGUAGE plpgsql AS $$
BEGIN
  RETURN idem.enqueue(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid, content_type);
EXCEPTION WHEN SQLSTATE 'IDM01' OR SQLSTATE 'IDM02' THEN
  RETURN NULL;
END $$;

-- ---- relays ----

-- Claims up to `most` messages for `lease` ms; of each aggregate the first only, and none while another of it is on
-- its way, as after a redrive. `repeats`: for how long the destination takes a repeat for what it is. Committed before
-- the first byte leaves; with `is_noted` each message is noted before it is sent (idem.note_sending), and otherwise
-- each may have been sent from here on.
CREATE FUNCTION idem.claim_messages(of_destination text, most bigint, lease bigint, repeats bigint, is_noted bigint)
RETURNS TABLE (seq bigint, id text, operation text, aggregatetype text, aggregateid text, type text, payload text,
  content_type text, created_at bigint, attempts integer, fence bigint, ambiguous integer, repeat_left bigint,
  quiet_for bigint) LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT o.seq FROM idem.outbox o
      WHERE o.destination = of_destination AND o.state = 'waiting' AND o.due_at <= at
        AND (o.aggregateid = '' OR NOT EXISTS (
          SELECT FROM idem.outbox e
            WHERE e.destination = o.destination AND e.state = 'waiting' AND e.aggregateid <> ''
              AND e.aggregatetype = o.aggregatetype AND e.aggregateid = o.aggregateid
              AND (e.seq < o.seq OR (e.seq > o.seq AND e.claimed AND e.due_at > at))))
      ORDER BY o.due_at, o.seq LIMIT most FOR UPDATE OF o SKIP LOCKED
  )
  UPDATE idem.outbox o SET
    fence = o.fence + 1,
    attempts = o.attempts + 1,
    due_at = at + idem.ms(lease),
    claimed = true,
    in_flight = is_noted = 0,
    ambiguous = o.ambiguous OR o.in_flight,
    quiet_since = CASE WHEN o.in_flight THEN at ELSE o.quiet_since END,
    first_at = CASE WHEN o.ambiguous OR o.in_flight THEN o.first_at ELSE at END,
    -- By what is declared today.
    repeat_until = CASE WHEN o.ambiguous OR o.in_flight THEN o.first_at ELSE at END + idem.ms(repeats)
  FROM due d WHERE o.seq = d.seq
  RETURNING o.seq, encode(uuid_send(o.id), 'hex'), encode(uuid_send(o.operation), 'hex'), o.aggregatetype,
    o.aggregateid, o.type, o.payload, o.content_type, round(extract(epoch FROM o.created_at) * 1000)::bigint,
    o.attempts, o.fence, o.ambiguous::integer, idem.ms_until(o.repeat_until, at), idem.ms_until(at, o.quiet_since);
END $$;

-- From here on it may be on the wire. No row: the claim is not the last one any more, and nothing may be sent.
CREATE FUNCTION idem.note_sending(of_seq bigint, of_fence bigint) RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY UPDATE idem.outbox o SET in_flight = true
    WHERE o.seq = of_seq AND o.fence = of_fence AND o.state = 'waiting' AND o.claimed RETURNING 1;
END $$;

-- What came of a claim: 'delivered'; 'put_off' for `delay` ms; likewise 'unseen', where nothing was sent because it
-- could not be looked up, and 'given_back', where nothing was tried; or 'dead'. No row: the claim is not the last one any more, and nothing was noted.
CREATE FUNCTION idem.note_delivery(of_seq bigint, of_fence bigint, how text, new_reference text, why text,
  delay bigint, is_ambiguous boolean) RETURNS SETOF integer LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  UPDATE idem.outbox o SET
    state = CASE how WHEN 'delivered' THEN 'delivered' WHEN 'dead' THEN 'dead' ELSE o.state END::idem.message_state,
    reference = CASE WHEN new_reference <> '' THEN new_reference ELSE o.reference END,
    due_at = CASE WHEN how IN ('put_off', 'unseen', 'given_back') THEN at + idem.ms(delay) ELSE o.due_at END,
    attempts = o.attempts - CASE how WHEN 'given_back' THEN 1 ELSE 0 END,
    claimed = false,
    in_flight = false,
    ambiguous = is_ambiguous,
    quiet_since = CASE WHEN NOT is_ambiguous THEN NULL WHEN how IN ('given_back', 'unseen') THEN o.quiet_since
                  ELSE at END,
    last_error = CASE how WHEN 'delivered' THEN '' ELSE why END,
    history = CASE how WHEN 'given_back' THEN o.history ELSE o.history || jsonb_build_object(
      'at', round(extract(epoch FROM at) * 1000)::bigint, 'attempt', o.attempts, 'how', how, 'why', why) END,
    ended_at = CASE WHEN how IN ('delivered', 'dead') THEN at END
  WHERE o.seq = of_seq AND o.fence = of_fence AND o.state = 'waiting' AND o.claimed
  RETURNING 1;
END $$;

-- ---- operators ----

-- Sends dead letters once more, one every `spacing` ms, up to `most`; null: of any. One that may have arrived is only
-- sent where its destination takes the repeat for what it is, or `nothing_there` says that somebody has looked. With
-- `dry_run` nothing changes. What each came to, 'redriven' or 'may_have_arrived'.
CREATE FUNCTION idem.redrive(of_destination text, of_message uuid, of_type text, most bigint, spacing bigint,
  nothing_there boolean, dry_run boolean, why text)
RETURNS TABLE (id text, destination text, type text, verdict text) LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT o.seq, o.ambiguous AND NOT nothing_there AND coalesce(o.repeat_until <= at, true) AS is_refused
      FROM idem.outbox o
      WHERE o.state = 'dead' AND (of_destination IS NULL OR o.destination = of_destination)
        AND (of_message IS NULL OR o.id = of_message) AND (of_type IS NULL OR o.type = of_type)
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

-- Gives dead letters up, with a reason; they stay for the record until they are reaped.
CREATE FUNCTION idem.discard(of_destination text, of_message uuid, of_type text, most bigint, dry_run boolean, why text)
RETURNS TABLE (id text, destination text, type text, verdict text) LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT o.seq FROM idem.outbox o
      WHERE o.state = 'dead' AND (of_destination IS NULL OR o.destination = of_destination)
        AND (of_message IS NULL OR o.id = of_message) AND (of_type IS NULL OR o.type = of_type)
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

-- Takes away up to `most` messages that were delivered or discarded longer than `retention` ms ago.
CREATE FUNCTION idem.reap_messages(most bigint, retention bigint) RETURNS SETOF integer LANGUAGE plpgsql AS $$
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
