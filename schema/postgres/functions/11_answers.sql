-- Answers as bytes: version, status, whether the body was kept, then the framed fields.

CREATE OR REPLACE FUNCTION idem.little_endian(value bigint, bytes integer) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN (SELECT string_agg(substr(int8send(value), 9 - n, 1), '' ORDER BY n) FROM generate_series(1, bytes) n);

CREATE OR REPLACE FUNCTION idem.framed(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN idem.little_endian(length(value), 4) || value;

CREATE OR REPLACE FUNCTION idem.length_framed(part bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN idem.little_endian(length(part), 8) || part;

-- `headers`: an array of pairs, [["Content-Type", "application/json"], ...]. For bytes that are no UTF-8 use
-- the parameter `head` of the functions that take one.
CREATE OR REPLACE FUNCTION idem.answer_head(status integer, headers jsonb, body_stored boolean) RETURNS bytea
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

CREATE OR REPLACE FUNCTION idem.status_of(head bytea) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN get_byte(head, 1) + 256 * get_byte(head, 2);

CREATE OR REPLACE FUNCTION idem.has_body(head bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN get_byte(head, 3) = 1;

-- The fields of a stored answer, in their order. A value is shown as text where it is UTF-8.
CREATE OR REPLACE FUNCTION idem.headers(head bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
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

-- Above that many bytes an answer lies apart: a record shall be small enough for several in a page.
CREATE OR REPLACE FUNCTION idem.is_small(head bytea, body bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN octet_length(head) + octet_length(body) <= 1000;
