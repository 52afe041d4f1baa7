-- The store's clock, and lengths of time in milliseconds.

-- The store's clock (protocol.md §15): not the transaction's time, which may be minutes old.
CREATE OR REPLACE FUNCTION idem.now() RETURNS timestamptz LANGUAGE sql VOLATILE
RETURN date_trunc('milliseconds', clock_timestamp());

CREATE OR REPLACE FUNCTION idem.ms(length bigint) RETURNS interval LANGUAGE sql IMMUTABLE
RETURN interval '1 millisecond' * length;

CREATE OR REPLACE FUNCTION idem.ms_until(moment timestamptz, at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN round(extract(epoch FROM moment - at) * 1000)::bigint;

CREATE OR REPLACE FUNCTION idem.epoch() RETURNS timestamptz LANGUAGE sql IMMUTABLE
RETURN '1970-01-01 00:00:00+00'::timestamptz;

CREATE OR REPLACE FUNCTION idem.us(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN idem.ms_until(at, idem.epoch()) * 1000;

CREATE OR REPLACE FUNCTION idem.in_ms(length interval, name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ms numeric := extract(epoch FROM length) * 1000;
BEGIN
  IF ms IS NULL OR ms < 0 OR ms > 3153600000000 THEN
    RAISE EXCEPTION '%: % is not a length of time from 0 to 100 years', name, length USING ERRCODE = 'IDM05';
  END IF;
  RETURN ms::bigint;
END $$;
