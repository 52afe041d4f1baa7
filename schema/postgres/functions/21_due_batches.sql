-- What lies beside a record, and says when to look at it.

CREATE OR REPLACE FUNCTION idem.look_at_lease(id uuid, due_at timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.lease_due_batches VALUES (due_at, ARRAY[id]);
END $$;

CREATE OR REPLACE FUNCTION idem.look_at_expiry(id uuid, due_at timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.expiry_due_batches VALUES (due_at, ARRAY[id]);
END $$;

-- Puts records off again, those that go together into one row of a slice's size. `moments`: when each may be due.
CREATE OR REPLACE FUNCTION idem.put_off_leases(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO idem.lease_due_batches
    SELECT min(o.moment), array_agg(o.id)
    FROM (SELECT r.id, r.moment, (row_number() OVER (ORDER BY r.moment) - 1) / 64 AS part
            FROM unnest(ids, moments) r(id, moment)) o GROUP BY o.part;
END $$;

-- Likewise, into looks as small as what is taken of them at a time: of a look of 64 a slice of 16 would have to read all,
-- and to write three quarters anew.
CREATE OR REPLACE FUNCTION idem.put_off_expiries(ids uuid[], moments timestamptz[]) RETURNS void LANGUAGE plpgsql
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

-- With each change of a record and its making.
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
