-- Leases and pending requests that time has ended (§3, §19). Locked rows are left for the next round.

-- Takes due batches of leases off their table, the longest due first: the ids of at least `most` records, if so many
-- are due, and of one batch more at most. NULL: none is due.
CREATE OR REPLACE FUNCTION idem.take_due_leases(at timestamptz, most integer) RETURNS uuid[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  due uuid[];
BEGIN
  WITH next AS MATERIALIZED (
    SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.lease_due_batches l WHERE l.due_at <= at
      ORDER BY l.due_at LIMIT 256 FOR UPDATE SKIP LOCKED
  ), enough AS (
    SELECT b.place FROM (
      SELECT n.place, sum(n.size) OVER (ORDER BY n.due_at, n.place) - n.size AS before FROM next n
    ) b WHERE b.before < most
  ), taken AS (
    DELETE FROM idem.lease_due_batches l USING enough n WHERE l.ctid = n.place RETURNING l.ids
  )
  SELECT array_agg(DISTINCT i.id) INTO due FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
  RETURN due;
END $$;

-- Notes a running record past its lease that only a reserve may take up (policy resume or rerun), and that waits for
-- one. False: another transaction has the row, or the lease was renewed.
CREATE OR REPLACE FUNCTION idem.park_for_reserve(of_record uuid, lease_end timestamptz, at timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The row's lock comes first, as in every change of the record.
  PERFORM 1 FROM idem.slots h
    WHERE h.id = of_record AND h.state = 'in_progress' AND h.locked_until <= at FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO idem.parked_records VALUES (of_record, 'in_progress', lease_end)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, moment = excluded.moment;
  RETURN true;
END $$;

-- Ends up to `most` expired leases and pending requests past their expiry. Due records that are locked are checked
-- again later. Most of the checked records ended long ago, so a call checks a few hundred at least. The caller sets
-- whether the commit waits for the disk: a sweep that is forgotten is done again. An answer that a sweep gives must be
-- durable first.
CREATE OR REPLACE FUNCTION idem.sweep(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  before idem.slots;
  held idem.slots;
  s idem.slots;
  at timestamptz := idem.now();
  checked uuid[];
  due timestamptz;
  later uuid[] := '{}';
  moments timestamptz[] := '{}';
  ended integer := 0;
  step idem.lifecycle_step;
  began timestamptz := clock_timestamp();
BEGIN
  WHILE ended < most AND clock_timestamp() < began + interval '250 ms' LOOP
    checked := idem.take_due_leases(at, greatest(most - ended, 256));
    EXIT WHEN checked IS NULL;
    FOR before IN
      SELECT t.* FROM unnest(checked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE t.state IN ('pending', 'in_progress')
    LOOP
      IF idem.contradicts_itself(before) THEN
        later := later || before.id;     -- It stays as it is until a person has looked.
        moments := moments || (at + interval '1 hour');
        CONTINUE;
      END IF;
      due := CASE before.state WHEN 'pending' THEN before.expires_at ELSE before.locked_until END;
      IF due <= at THEN
        IF before.state = 'in_progress' AND NOT idem.has_sent_nothing(before) AND before.lease_policy <> 'unknown' THEN
          IF NOT idem.park_for_reserve(before.id, due, at) THEN
            later := later || before.id;
            moments := moments || due;
          END IF;
          CONTINUE;
        END IF;
        IF ended >= most THEN
          later := later || before.id;
          moments := moments || due;
          CONTINUE;
        END IF;
        SELECT * INTO held FROM idem.slots t WHERE t.id = before.id FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
          s := idem.end_overdue(held, at);
          IF s IS DISTINCT FROM held THEN
            -- A reader may get this answer, and its own commit would make nothing durable.
            IF s.state = 'completed' THEN PERFORM idem.be_durable(); END IF;
            PERFORM idem.note_ended_lease(held, s.state, 'sweeper', at);
            PERFORM idem.update_record(s);
            step := ROW(s.id, held.state, s.state, idem.ms_until(at,
              CASE held.state WHEN 'pending' THEN held.expires_at ELSE held.locked_until END));
            RETURN NEXT step;
            ended := ended + 1;
            CONTINUE;
          END IF;
          CONTINUE WHEN held.state NOT IN ('pending', 'in_progress');
          due := CASE held.state WHEN 'pending' THEN held.expires_at ELSE held.locked_until END;
        END IF;
      END IF;
      later := later || before.id;
      moments := moments || due;
    END LOOP;
  END LOOP;
  IF cardinality(later) > 0 THEN PERFORM idem.reschedule_lease_checks(later, moments); END IF;
END $$;
