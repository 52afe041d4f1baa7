-- The days of the answers.

-- Makes the table for the answers that expire on `day`. False: there is one, or answers of that day lie in the last
-- table already. It does not wait: an open transaction that has read an answer makes it fail (55P03), and the store
-- tries again later. The new table has row-level security if the others have.
CREATE OR REPLACE FUNCTION idem.make_day(day date) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := 'answers_' || to_char(day, 'YYYYMMDD');
  first text := to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00';
  next text := to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00';
BEGIN
  PERFORM set_config('lock_timeout', '50ms', true);
  PERFORM pg_advisory_xact_lock(1229210957, 2);
  IF to_regclass('idem.' || name) IS NOT NULL OR EXISTS (
    SELECT FROM idem.answers_without_day a
    WHERE a.expires_at >= first::timestamptz AND a.expires_at < next::timestamptz) THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE idem.%I (LIKE idem.answers INCLUDING ALL)', name);
  IF (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = 'idem.answers'::regclass) THEN
    EXECUTE format('ALTER TABLE idem.%I ENABLE ROW LEVEL SECURITY', name);
  END IF;
  EXECUTE format('ALTER TABLE idem.answers ATTACH PARTITION idem.%I FOR VALUES FROM (%L) TO (%L)', name, first, next);
  RETURN true;
END $$;

-- The day on which an answer that is completed `days` days from now expires. `retention` in ms.
CREATE OR REPLACE FUNCTION idem.expiry_day(retention bigint, days integer) RETURNS date LANGUAGE sql VOLATILE
RETURN ((idem.now() + idem.ms(retention)) AT TIME ZONE 'UTC')::date + days;

-- Empties and drops the tables of past days: every answer in them has expired, whether or not its record was reaped.
-- From the last table it deletes the expired rows. Emptying locks that day's table alone, dropping all tables of
-- answers: where it would have to wait, it gives up, and the store tries again later.
CREATE OR REPLACE FUNCTION idem.drop_old_days() RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  child regclass;
  dropped integer := 0;
  today text := 'answers_' || to_char(idem.now() AT TIME ZONE 'UTC', 'YYYYMMDD');
BEGIN
  PERFORM set_config('lock_timeout', '50ms', true);
  DELETE FROM idem.answers_without_day a WHERE a.expires_at <= idem.now();
  FOR child IN
    SELECT i.inhrelid::regclass FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'idem.answers'::regclass AND c.relname ~ '^answers_[0-9]{8}$' AND c.relname < today
  LOOP
    -- Two blocks: a table that could not be dropped stays empty.
    BEGIN
      EXECUTE format('TRUNCATE %s', child);
    EXCEPTION WHEN lock_not_available THEN
      CONTINUE;
    END;
    BEGIN
      EXECUTE format('DROP TABLE %s', child);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN
      NULL;
    END;
  END LOOP;
  RETURN dropped;
END $$;
