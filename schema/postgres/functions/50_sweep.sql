-- What time does to records (§3, §19). Rows that somebody holds are left for the next round.

-- Ends up to `most` expired leases and pending requests past their expiry. What is due and held by somebody is
-- looked at again a moment later. Of the records whose leases were looked at most have ended long ago, so a call goes
-- through a few hundred at least; what only a reserve takes up begins to stand. Whether its commit is waited for is the
-- session's to say, as a sweep that is forgotten is done again; but an answer that it gives is on the disk before it is
-- told.
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
  asked uuid[];
  due timestamptz;
  later uuid[] := '{}';
  moments timestamptz[] := '{}';
  ended integer := 0;
  step idem.lifecycle_step;
  began timestamptz := clock_timestamp();
BEGIN
  WHILE ended < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place, l.due_at, cardinality(l.ids) AS size FROM idem.lease_due_batches l WHERE l.due_at <= at
        ORDER BY l.due_at LIMIT 256 FOR UPDATE SKIP LOCKED
    ), enough AS (
      SELECT b.place FROM (
        SELECT n.place, sum(n.size) OVER (ORDER BY n.due_at, n.place) - n.size AS before FROM next n
      ) b WHERE b.before < greatest(most - ended, 256)
    ), taken AS (
      DELETE FROM idem.lease_due_batches l USING enough n WHERE l.ctid = n.place RETURNING l.ids
    )
    SELECT array_agg(DISTINCT i.id) INTO asked FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
    EXIT WHEN asked IS NULL;
    FOR before IN
      SELECT t.* FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE t.state IN ('pending', 'in_progress')
    LOOP
      due := CASE before.state WHEN 'pending' THEN before.expires_at ELSE before.locked_until END;
      IF due <= at THEN
        -- Only a reserve takes up what may be resumed or run again; it stands until then.
        IF before.state = 'in_progress' AND before.dispatched AND before.lease_policy <> 'unknown' THEN
          -- Locked first, as whoever changes it does. One that is locked, or renewed, is looked at again.
          PERFORM 1 FROM idem.slots h
            WHERE h.id = before.id AND h.state = 'in_progress' AND h.locked_until <= at FOR UPDATE SKIP LOCKED;
          IF FOUND THEN
            INSERT INTO idem.parked_records VALUES (before.id, 'in_progress', due)
              ON CONFLICT (id) DO UPDATE SET state = excluded.state, moment = excluded.moment;
          ELSE
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
          s := idem.swept(held, at);
          IF s IS DISTINCT FROM held THEN
            -- An answer may be told to whoever asks, who writes nothing behind it.
            IF s.state = 'completed' THEN PERFORM idem.be_durable(); END IF;
            PERFORM idem.note_ended_lease(held, s.state, 'sweeper', at);
            PERFORM idem.put(s);
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
  IF cardinality(later) > 0 THEN PERFORM idem.put_off_leases(later, moments); END IF;
END $$;
