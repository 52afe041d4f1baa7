-- Answers as bytes. The head holds the version, the status, whether the body was kept, then the framed fields.
--
-- A literal with a backslash begins with E, here and in the other files: PL/pgSQL parses a body under the caller's
-- standard_conforming_strings.

-- An expression, which PostgreSQL inlines into the caller's plan: as a query it took most of a reserve's time.
CREATE OR REPLACE FUNCTION idem.little_endian(value bigint, bytes integer) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN substr(
  set_byte(set_byte(set_byte(set_byte(set_byte(set_byte(set_byte(set_byte(E'\\x0000000000000000'::bytea,
    0, (value & 255)::integer), 1, (value >> 8 & 255)::integer), 2, (value >> 16 & 255)::integer),
    3, (value >> 24 & 255)::integer), 4, (value >> 32 & 255)::integer), 5, (value >> 40 & 255)::integer),
    6, (value >> 48 & 255)::integer), 7, (value >> 56 & 255)::integer), 1, bytes);

CREATE OR REPLACE FUNCTION idem.framed(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN idem.little_endian(length(value), 4) || value;

CREATE OR REPLACE FUNCTION idem.length_framed(part bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN idem.little_endian(length(part), 8) || part;

-- False for a field that is never stored (protocol.md §14, as in src/core/exchange/policy.cpp): fields of one
-- connection, cookies and credentials, and the fields that Idem writes itself.
CREATE OR REPLACE FUNCTION idem.may_store(field text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN NOT (lower(field COLLATE "C") = ANY (ARRAY[
    'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'via',
    'authorization', 'set-cookie', 'set-cookie2', 'www-authenticate', 'authentication-info', 'alt-svc',
    'clear-site-data', 'idempotent-replayed', 'idempotency-outcome', 'idempotency-expires'] COLLATE "C")
  OR left(lower(field COLLATE "C"), 6) = 'proxy-' OR left(lower(field COLLATE "C"), 5) = 'idem-');

-- True for a value with control characters, as in src/http/head_fields.cpp: no parser accepts it. A tab is allowed.
CREATE OR REPLACE FUNCTION idem.has_controls(value text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN value COLLATE "C" ~ E'[\x01-\x08\x0a-\x1f\x7f]';

-- `headers`: an array of pairs, [["Content-Type", "application/json"], ...]. Fields that are never stored are left out,
-- as the gateway does. For bytes that are not UTF-8, pass a `head` to the functions that have this parameter.
CREATE OR REPLACE FUNCTION idem.answer_head(status integer, headers jsonb, body_stored boolean) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head bytea;
  pair jsonb;
  of_the_connection text[] := '{}';
BEGIN
  IF status IS NULL OR status NOT BETWEEN 200 AND 599 THEN
    RAISE EXCEPTION 'a response of status %: write one from 200 to 599', coalesce(status::text, 'NULL')
      USING ERRCODE = 'IDM05';
  END IF;
  IF jsonb_typeof(headers) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION 'headers: % is not an array of pairs', coalesce(left(headers::text, 100), 'NULL')
      USING ERRCODE = 'IDM05', HINT = 'Write [["Content-Type", "application/json"]], and [] for none.';
  END IF;
  FOR pair IN SELECT * FROM jsonb_array_elements(headers) LOOP
    IF jsonb_typeof(pair) <> 'array' OR jsonb_array_length(pair) <> 2 OR pair->>0 IS NULL
       OR pair->>0 !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$' OR pair->>1 IS NULL THEN
      RAISE EXCEPTION 'headers: % is not a pair of a field name and a value', left(pair::text, 100)
        USING ERRCODE = 'IDM05', HINT = 'Write [["Content-Type", "application/json"]].';
    END IF;
    IF idem.has_controls(pair->>1) THEN
      RAISE EXCEPTION 'headers: the value of the field % has a control character', pair->>0
        USING ERRCODE = 'IDM05', HINT = 'Write the value in one line; of the control characters it may have tabs.';
    END IF;
    IF lower((pair->>0) COLLATE "C") = 'connection' THEN
      of_the_connection := of_the_connection
        || regexp_split_to_array(btrim(lower((pair->>1) COLLATE "C"), E' \t'), E'[ \t]*,[ \t]*');
    END IF;
  END LOOP;
  head := E'\\x01'::bytea || idem.little_endian(status, 2)
          || CASE WHEN body_stored THEN E'\\x01'::bytea ELSE E'\\x00'::bytea END;
  FOR pair IN SELECT * FROM jsonb_array_elements(headers) LOOP
    CONTINUE WHEN NOT idem.may_store(pair->>0) OR lower((pair->>0) COLLATE "C") = ANY (of_the_connection);
    -- Blanks around a value are no part of it (RFC 9110 §5.5).
    head := head || idem.framed(convert_to(pair->>0, 'UTF8'))
                 || idem.framed(convert_to(btrim(pair->>1, E' \t'), 'UTF8'));
  END LOOP;
  RETURN head;
END $$;

CREATE OR REPLACE FUNCTION idem.status_of(head bytea) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN get_byte(head, 1) + 256 * get_byte(head, 2);

CREATE OR REPLACE FUNCTION idem.has_body(head bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN get_byte(head, 3) = 1;

-- The fields of a stored answer, in their order, without what a gateway stores beside them (trace_field and rpc_field of
-- src/core/exchange/answers.hpp). A value that is not UTF-8 is escaped.
CREATE OR REPLACE FUNCTION idem.headers(head bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
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
      ELSIF name NOT IN ('Idem-Trace', 'Idem-Rpc') THEN
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

-- Of an answer, or of a stored request, which has no head. It also covers the handle and the fingerprint, so that bytes
-- that lie in another record do not match. 64 bits show damage; this is not a signature.
CREATE OR REPLACE FUNCTION idem.checksum(id uuid, fingerprint bytea, head bytea, body bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE
RETURN substr(sha256(uuid_send(id) || fingerprint || int4send(octet_length(head)) || head || body), 1, 8);

-- A larger answer lies in idem.answers, so that several records fit into a page.
CREATE OR REPLACE FUNCTION idem.is_small(head bytea, body bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN octet_length(head) + octet_length(body) <= 1000;

-- The SQL face has the bounds of a gateway's defaults (include/idem/limits.hpp). No session can change them.
CREATE OR REPLACE FUNCTION idem.must_be_storable(head bytea, body bytea) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place integer := 5;
  size integer;
  parts integer := 0;
  part bytea;
  name text COLLATE "C";
BEGIN
  IF head IS NULL OR body IS NULL THEN
    RAISE EXCEPTION 'complete: status, headers and body are needed; a body may be empty' USING ERRCODE = 'IDM05';
  END IF;
  IF octet_length(body) > 1048576 OR octet_length(head) > 16384 THEN
    RAISE EXCEPTION 'a response of % bytes of body and % of headers: 1 MiB and 16 KiB are stored at most',
      octet_length(body), octet_length(head) USING ERRCODE = 'IDM05',
      HINT = 'Store a small answer that says where the large one is.';
  END IF;
  IF octet_length(head) < 4 OR get_byte(head, 0) <> 1 OR get_byte(head, 3) > 1 THEN
    RAISE EXCEPTION 'the head of a response is not in the form that idem.answer_head() makes' USING ERRCODE = 'IDM05';
  END IF;
  IF idem.status_of(head) NOT BETWEEN 200 AND 599 THEN
    RAISE EXCEPTION 'a response of status %: write one from 200 to 599', idem.status_of(head) USING ERRCODE = 'IDM05';
  END IF;
  IF idem.status_of(head) IN (204, 205, 304) AND octet_length(body) > 0 THEN
    RAISE EXCEPTION 'a response of status % has no body', idem.status_of(head) USING ERRCODE = 'IDM05',
      HINT = 'Leave the body out, or write another status.';
  END IF;
  -- Then names and values in turn, each behind its length in four bytes.
  WHILE place <= length(head) LOOP
    size := CASE WHEN place + 3 <= length(head) AND get_byte(head, place + 2) = 0
                 THEN get_byte(head, place - 1) + 256 * get_byte(head, place) + 65536 * get_byte(head, place + 1) END;
    IF size IS NULL OR place + 3 + size > length(head) THEN
      RAISE EXCEPTION 'the head of a response ends within a field' USING ERRCODE = 'IDM05';
    END IF;
    parts := parts + 1;
    part := substr(head, place + 4, size);
    IF parts % 2 = 1 THEN
      -- Names are ASCII; a name with another byte is none of those that are never stored.
      name := encode(part, 'escape');
      IF NOT idem.may_store(name) THEN
        RAISE EXCEPTION 'the field % is never stored', name USING ERRCODE = 'IDM05', HINT = 'Leave it out.';
      END IF;
      IF name !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$' THEN
        RAISE EXCEPTION '% is not the name of a field', name USING ERRCODE = 'IDM05';
      END IF;
    ELSIF idem.has_controls(encode(part, 'escape')) OR position(E'\\x00'::bytea IN part) > 0 THEN
      RAISE EXCEPTION 'the value of the field % has a control character', name USING ERRCODE = 'IDM05',
        HINT = 'Write the value in one line; of the control characters it may have tabs.';
    ELSIF part <> btrim(part, E'\x20\x09'::bytea) THEN
      RAISE EXCEPTION 'the value of the field % has blanks around it', name USING ERRCODE = 'IDM05',
        HINT = 'They are no part of a value: leave them out.';
    END IF;
    place := place + 4 + size;
  END LOOP;
  IF parts % 2 = 1 OR parts > 200 THEN
    RAISE EXCEPTION 'the head of a response has % parts: a name and a value for each field, 100 fields at most', parts
      USING ERRCODE = 'IDM05';
  END IF;
END $$;
