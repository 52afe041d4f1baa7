-- The names of records, as the gateway makes them.

CREATE OR REPLACE FUNCTION idem.xored(value bytea, with_byte integer) RETURNS bytea LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  FOR n IN 0..length(value) - 1 LOOP
    value := set_byte(value, n, get_byte(value, n) # with_byte);
  END LOOP;
  RETURN value;
END $$;

-- HMAC-SHA-256 (RFC 2104), for keys of up to 64 bytes.
CREATE OR REPLACE FUNCTION idem.keyed_digest(key bytea, message bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  padded bytea := key || decode(repeat('00', 64 - length(key)), 'hex');
BEGIN
  RETURN sha256(idem.xored(padded, 92) || sha256(idem.xored(padded, 54) || message));
END $$;

-- The handle under which the gateway and this function find the record of a key.
CREATE OR REPLACE FUNCTION idem.record_id_anywhere(scope text, operation text, key text) RETURNS uuid
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i idem.identity;
  newest text COLLATE "C";
BEGIN
  IF num_nulls(scope, operation, key) > 0 THEN
    RAISE EXCEPTION 'record_id: no argument may be null' USING ERRCODE = 'IDM05';
  END IF;
  SELECT * INTO STRICT i FROM idem.identity;
  IF i.key_scope NOT IN ('operation', 'tenant') THEN
    RAISE EXCEPTION 'this store is an unfinished copy of another, or its copy has taken its place (idem store copy)'
      USING ERRCODE = 'IDM05', HINT = 'Connect to the store that the gateways use.';
  END IF;
  SELECT d.id INTO newest FROM idem.digest_secrets d ORDER BY d.generation DESC LIMIT 1;
  IF newest <> left(encode(idem.keyed_digest(idem.keyed_digest(i.secret, 'idem secret id'), ''), 'hex'), 16) THEN
    RAISE EXCEPTION 'the gateways name records with a secret that this store does not hold' USING ERRCODE = 'IDM05',
      HINT = 'Take the handle from Idem-Operation, or start the gateways without --secret-file.';
  END IF;
  RETURN encode(substr(idem.keyed_digest(idem.keyed_digest(i.secret, 'idem record id'),
      idem.length_framed(convert_to(scope, 'UTF8'))
      || idem.length_framed(CASE i.key_scope WHEN 'tenant' THEN '' ELSE convert_to(operation, 'UTF8') END)
      || idem.length_framed(convert_to(key, 'UTF8'))), 1, 16), 'hex')::uuid;
END $$;
