-- What clients and services wrote is compressed by lz4 if the server has it: it takes a quarter of pglz's time for the
-- same space (bench/results/postgres_rows.md). Values from before stay as they are. A new day's table has its parent's
-- setting. One that another role owns, because its node made it, keeps pglz until it is dropped.
DO $$
DECLARE
  answers regclass;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_settings s
                   WHERE s.name = 'default_toast_compression' AND 'lz4' = ANY (s.enumvals)) THEN
    RETURN;
  END IF;
  FOR answers IN
    SELECT 'idem.answers'::regclass UNION ALL
    SELECT c.oid::regclass FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'idem.answers'::regclass AND pg_has_role(c.relowner, 'USAGE')
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN head SET COMPRESSION lz4, ALTER COLUMN body SET COMPRESSION lz4',
                   answers);
  END LOOP;
  ALTER TABLE idem.slots
    ALTER COLUMN request SET COMPRESSION lz4, ALTER COLUMN response_head SET COMPRESSION lz4,
    ALTER COLUMN response_body SET COMPRESSION lz4;
  ALTER TABLE idem.outbox ALTER COLUMN payload SET COMPRESSION lz4, ALTER COLUMN history SET COMPRESSION lz4;
  ALTER TABLE idem.flows ALTER COLUMN input SET COMPRESSION lz4;
  ALTER TABLE idem.journal ALTER COLUMN line SET COMPRESSION lz4;
END $$;
