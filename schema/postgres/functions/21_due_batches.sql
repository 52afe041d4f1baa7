-- The rows beside a record: when sweeper and reaper check it, and whether it waits for an event.

CREATE OR REPLACE FUNCTION idem.schedule_lease_check(id uuid, due_at timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.lease_due_batches VALUES (due_at, ARRAY[id]);
END $$;

CREATE OR REPLACE FUNCTION idem.schedule_expiry_check(id uuid, due_at timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.expiry_due_batches VALUES (due_at, ARRAY[id]);
END $$;

-- Writes due records back, in batches of a slice's size. `moments`: when each may be due.
CREATE OR REPLACE FUNCTION idem.reschedule_lease_checks(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.lease_due_batches
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 64 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part;
END $$;

-- Likewise, in batches as small as a reaper's slice: of a batch of 64, a slice of 16 would read all and write three
-- quarters again.
CREATE OR REPLACE FUNCTION idem.reschedule_expiry_checks(ids uuid[], moments timestamptz[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF cardinality(ids) <= 16 THEN
    INSERT INTO idem.expiry_due_batches VALUES ((SELECT min(m) FROM unnest(moments) m), ids);
    RETURN;
  END IF;
  INSERT INTO idem.expiry_due_batches
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 16 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part;
END $$;

-- Called with each change of a record, and when it is made.
CREATE OR REPLACE FUNCTION idem.keep_parked(s idem.slots) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF s.state IN ('pending', 'unknown', 'failed_retryable') THEN
    INSERT INTO idem.parked_records AS t VALUES
      (s.id, s.state, CASE s.state WHEN 'pending' THEN s.locked_until ELSE s.changed_at END)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, moment = excluded.moment;
  ELSE
    DELETE FROM idem.parked_records t WHERE t.id = s.id;
  END IF;
END $$;
