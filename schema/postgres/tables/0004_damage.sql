-- Damage that could let work run again, or be taken for an answer, shows (protocol.md §22).
ALTER TABLE idem.slots ADD COLUMN unsent_token uuid; -- the token of an attempt that has sent nothing; otherwise NULL.
                                                     -- `dispatched` alone is one bit, and proves nothing
UPDATE idem.slots s SET unsent_token = s.token
  WHERE s.state = 'in_progress' AND NOT s.dispatched
    AND s.id IN (SELECT i.id FROM idem.lease_due_batches l CROSS JOIN LATERAL unnest(l.ids) i(id));
ALTER TABLE idem.evidence ADD COLUMN checksum bytea; -- idem.evidence_checksum(); NULL: older than this column
