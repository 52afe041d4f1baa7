-- Names of tables and columns say what they hold.
ALTER TABLE idem.lease_looks RENAME TO lease_due_batches;
ALTER INDEX idem.lease_looks_due RENAME TO lease_due_batches_due;
ALTER TABLE idem.expiry_looks RENAME TO expiry_due_batches;
ALTER INDEX idem.expiry_looks_due RENAME TO expiry_due_batches_due;
ALTER TABLE idem.standing RENAME TO parked_records;
ALTER INDEX idem.standing_pkey RENAME TO parked_records_pkey;
ALTER INDEX idem.standing_in_order RENAME TO parked_records_in_order;
ALTER INDEX idem.standing_by_id RENAME TO parked_records_by_id;
ALTER TABLE idem.outbox RENAME COLUMN quiet_since TO no_call_in_flight_since;
ALTER TABLE idem.flows RENAME COLUMN quiet_since TO no_call_in_flight_since;
ALTER TABLE idem.outbox RENAME COLUMN fence TO claim;

-- Their results and parameters have other names.
DROP FUNCTION IF EXISTS idem.claim_messages(text, bigint, bigint, bigint, bigint);
DROP FUNCTION IF EXISTS idem.note_sending(bigint, bigint);
DROP FUNCTION IF EXISTS idem.note_delivery(bigint, bigint, text, text, text, bigint, boolean);
