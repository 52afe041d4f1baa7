-- Messages of services (protocol.md §18). The business transaction writes the row, so it is there if and only if the
-- business rows are.
--
-- A relay claims due messages, sends them, and notes each result under the claim's number. It finds messages by their
-- state and not by a position in the table, so it also finds one that was committed late.

-- The row gets its number under the aggregate's lock, which ends after the row becomes visible. So of two messages of
-- one aggregate, the one with the lower number is visible first.
CREATE OR REPLACE FUNCTION idem.put_message(message uuid, operation uuid, destination text, aggregatetype text,
  aggregateid text, type text, payload text, content_type text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz;
BEGIN
  IF aggregateid <> '' COLLATE "C" THEN
    PERFORM pg_advisory_xact_lock(1229210959, hashtext(
      (destination || E'\n' || aggregatetype || E'\n' || aggregateid) COLLATE "C"));
  END IF;
  at := idem.now();
  INSERT INTO idem.outbox (id, aggregatetype, aggregateid, type, payload, content_type, destination, operation,
                           created_at, due_at)
    VALUES (message, put_message.aggregatetype, put_message.aggregateid, put_message.type, put_message.payload,
            put_message.content_type, put_message.destination, put_message.operation, at, at);
END $$;

-- Claims up to `most` messages for `lease` ms: of each aggregate the first only, and none while another one is in
-- flight, as after a redrive. `repeats`: for how long the destination recognises a repeat. The relay commits this
-- before it sends the first byte. With `is_noted` it notes each message before it sends it (idem.note_sending);
-- without, each may have been sent from the claim on.
CREATE OR REPLACE FUNCTION idem.claim_messages(of_destination text, most bigint, lease bigint, repeats bigint,
  is_noted bigint)
RETURNS TABLE (seq bigint, id text, operation text, aggregatetype text, aggregateid text, type text, payload text,
  content_type text, created_at bigint, attempts integer, claim bigint, ambiguous integer, repeat_left bigint,
  quiet_for bigint) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := idem.now();
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT o.seq FROM idem.outbox o
      WHERE o.destination = of_destination COLLATE "C" AND o.state = 'waiting' AND o.due_at <= at
        AND (o.aggregateid = '' OR NOT EXISTS (
          SELECT FROM idem.outbox e
            WHERE e.destination = o.destination AND e.state = 'waiting' AND e.aggregateid <> ''
              AND e.aggregatetype = o.aggregatetype AND e.aggregateid = o.aggregateid
              AND (e.seq < o.seq OR (e.seq > o.seq AND e.claimed AND e.due_at > at))))
      ORDER BY o.due_at, o.seq LIMIT most FOR UPDATE OF o SKIP LOCKED
  )
  UPDATE idem.outbox o SET
    claim = o.claim + 1,
    attempts = o.attempts + 1,
    due_at = at + idem.ms(lease),
    claimed = true,
    in_flight = is_noted = 0,
    ambiguous = o.ambiguous OR o.in_flight,
    no_call_in_flight_since = CASE WHEN o.in_flight THEN at ELSE o.no_call_in_flight_since END,
    first_at = CASE WHEN o.ambiguous OR o.in_flight THEN o.first_at ELSE at END,
    -- By the destination's current settings.
    repeat_until = CASE WHEN o.ambiguous OR o.in_flight THEN o.first_at ELSE at END + idem.ms(repeats)
  FROM due d WHERE o.seq = d.seq
  RETURNING o.seq, encode(uuid_send(o.id), 'hex'), encode(uuid_send(o.operation), 'hex'), o.aggregatetype,
    o.aggregateid, o.type, o.payload, o.content_type, round(extract(epoch FROM o.created_at) * 1000)::bigint,
    o.attempts, o.claim, o.ambiguous::integer, idem.ms_until(o.repeat_until, at),
    idem.ms_until(at, o.no_call_in_flight_since);
END $$;

-- From here on the message may have been sent. No row: there is a newer claim, and this relay must not send.
CREATE OR REPLACE FUNCTION idem.note_sending(of_seq bigint, of_claim bigint) RETURNS SETOF integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.be_durable();
  RETURN QUERY UPDATE idem.outbox o SET in_flight = true
    WHERE o.seq = of_seq AND o.claim = of_claim AND o.state = 'waiting' AND o.claimed RETURNING 1;
END $$;

-- The result of a claim: 'delivered'; 'put_off' for `delay` ms; likewise 'unseen' (a lookup failed, so nothing was
-- sent) and 'given_back' (nothing was tried); or 'dead'. No row: there is a newer claim, and nothing was noted.
CREATE OR REPLACE FUNCTION idem.note_delivery(of_seq bigint, of_claim bigint, how text, new_reference text, why text,
  delay bigint, is_ambiguous boolean) RETURNS SETOF integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
    no_call_in_flight_since = CASE WHEN NOT is_ambiguous THEN NULL
      WHEN how IN ('given_back', 'unseen') THEN o.no_call_in_flight_since ELSE at END,
    last_error = CASE how WHEN 'delivered' THEN '' ELSE why END,
    history = CASE how WHEN 'given_back' THEN o.history ELSE o.history || jsonb_build_object(
      'at', round(extract(epoch FROM at) * 1000)::bigint, 'attempt', o.attempts, 'how', how, 'why', why) END,
    ended_at = CASE WHEN how IN ('delivered', 'dead') THEN at END
  WHERE o.seq = of_seq AND o.claim = of_claim AND o.state = 'waiting' AND o.claimed
  RETURNING 1;
END $$;
