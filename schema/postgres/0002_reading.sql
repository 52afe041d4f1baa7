-- What the steps are made of: the clock, how a record reads now, answers as bytes.

-- The store's clock (protocol.md §15): never the transaction's time, which may be minutes old.
CREATE FUNCTION idem.now() RETURNS timestamptz LANGUAGE sql VOLATILE
RETURN date_trunc('milliseconds', clock_timestamp());

CREATE FUNCTION idem.ms(length bigint) RETURNS interval LANGUAGE sql IMMUTABLE
RETURN interval '1 millisecond' * length;

CREATE FUNCTION idem.ms_until(moment timestamptz, at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN round(extract(epoch FROM moment - at) * 1000)::bigint;

-- The state as it reads at a moment: completed past its expiry reads as expired.
CREATE FUNCTION idem.state_at(s idem.slots, at timestamptz) RETURNS idem.state LANGUAGE sql IMMUTABLE
RETURN CASE WHEN s.state = 'completed' AND at >= s.expires_at THEN 'expired' ELSE s.state END;

-- False for what counts as no record though it may still lie there.
CREATE FUNCTION idem.is_live(s idem.slots, at timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN s.id IS NULL THEN false
  WHEN s.state = 'failed_retryable' THEN at < s.expires_at
  WHEN s.state IN ('completed', 'expired') THEN at < s.tombstone_until
  ELSE true
END;

-- True when one of the fingerprints that were offered is the record's. They are keyed digests, so the
-- time that a comparison takes tells nothing to who does not have the key.
CREATE FUNCTION idem.matches(offered bytea[], stored bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN stored = ANY (offered);

-- Only of two fingerprints that were made by the same rules does a difference prove another request:
-- from version 3 on a digest begins with the name of its rule.
CREATE FUNCTION idem.comparable(a bytea, b bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN substr(a, 1, 4) = substr(b, 1, 4)
   AND (substr(a, 1, 4) < '\x00000003' OR substr(a, 1, 12) = substr(b, 1, 12));

-- ---- answers as bytes: version, status, whether the body was kept, then the framed fields ----

CREATE FUNCTION idem.little_endian(value bigint, bytes integer) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN (SELECT string_agg(substr(int8send(value), 9 - n, 1), '' ORDER BY n) FROM generate_series(1, bytes) n);

CREATE FUNCTION idem.framed(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN idem.little_endian(length(value), 4) || value;

-- `headers`: an array of pairs, [["Content-Type", "application/json"], ...]. For bytes that are no UTF-8 use
-- the parameter `head` of the functions that take one.
CREATE FUNCTION idem.answer_head(status integer, headers jsonb, body_stored boolean) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  head bytea := '\x01'::bytea || idem.little_endian(status, 2)
                || CASE WHEN body_stored THEN '\x01'::bytea ELSE '\x00'::bytea END;
  pair jsonb;
BEGIN
  IF status NOT BETWEEN 100 AND 999 THEN
    RAISE EXCEPTION 'a response of status %', status USING ERRCODE = 'IDM05';
  END IF;
  FOR pair IN SELECT * FROM jsonb_array_elements(headers) LOOP
    IF jsonb_typeof(pair) <> 'array' OR jsonb_array_length(pair) <> 2
       OR pair->>0 !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$' OR coalesce(pair->>1, E'\n') ~ '[\r\n]' THEN
      RAISE EXCEPTION 'headers: % is no pair of a field name and a value', pair
        USING ERRCODE = 'IDM05', HINT = 'Write [["Content-Type", "application/json"]].';
    END IF;
    head := head || idem.framed(convert_to(pair->>0, 'UTF8')) || idem.framed(convert_to(pair->>1, 'UTF8'));
  END LOOP;
  RETURN head;
END $$;

CREATE FUNCTION idem.status_of(head bytea) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN get_byte(head, 1) + 256 * get_byte(head, 2);

CREATE FUNCTION idem.has_body(head bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN get_byte(head, 3) = 1;

-- The fields of a stored answer, in their order. A value is shown as text where it is UTF-8.
CREATE FUNCTION idem.headers(head bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  place integer := 5;
  part bytea;
  name text;
  pairs jsonb := '[]';
BEGIN
  WHILE place <= length(head) LOOP
    FOR n IN 1..2 LOOP
      part := substr(head, place + 4, get_byte(head, place - 1) + 256 * get_byte(head, place)
                                      + 65536 * get_byte(head, place + 1));
      place := place + 4 + length(part);
      IF n = 1 THEN
        name := convert_from(part, 'UTF8');
      ELSE
        BEGIN
          pairs := pairs || jsonb_build_array(jsonb_build_array(name, convert_from(part, 'UTF8')));
        EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
          pairs := pairs || jsonb_build_array(jsonb_build_array(name, encode(part, 'escape')));
        END;
      END IF;
    END LOOP;
  END LOOP;
  RETURN pairs;
END $$;

-- The handle as it travels: 32 lower-case hex digits.
CREATE FUNCTION idem.handle(id uuid) RETURNS text LANGUAGE sql IMMUTABLE RETURN replace(id::text, '-', '');
