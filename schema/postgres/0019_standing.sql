-- What evidence can settle is found without a walk through all records (list(), of the next file): those that run, by
-- the looks at their leases, and those that stand, to which records that failed and may run again belong now, and those
-- whose lease has ended and which only a reserve takes up.

-- Nobody changes a record between the look at all of them and the new rules of what stands.
LOCK TABLE idem.slots IN SHARE ROW EXCLUSIVE MODE;

COMMENT ON TABLE idem.standing IS
  'Records that stay as they are until something happens: pending, unknown, failed_retryable (moment: since), and'
  ' in_progress past their lease where a reserve takes them up (moment: its end). A row that its record has outgrown'
  ' counts for nothing.';

CREATE OR REPLACE FUNCTION idem.keep_standing(s idem.slots) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF s.state IN ('pending', 'unknown', 'failed_retryable') THEN
    INSERT INTO idem.standing AS t VALUES
      (s.id, s.state, CASE s.state WHEN 'pending' THEN s.locked_until ELSE s.changed_at END)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, moment = excluded.moment;
  ELSE
    DELETE FROM idem.standing t WHERE t.id = s.id;
  END IF;
END $$;

INSERT INTO idem.standing
  SELECT s.id, s.state, CASE s.state WHEN 'in_progress' THEN s.locked_until ELSE s.changed_at END FROM idem.slots s
    WHERE s.state = 'failed_retryable'
      OR s.state = 'in_progress' AND s.dispatched AND s.lease_policy <> 'unknown' AND s.locked_until <= idem.now()
  ON CONFLICT DO NOTHING;
