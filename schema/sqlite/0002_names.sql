-- Names of columns say what they hold.
ALTER TABLE idem_outbox RENAME COLUMN quiet_since TO no_call_in_flight_since;
ALTER TABLE idem_flows RENAME COLUMN quiet_since TO no_call_in_flight_since;
ALTER TABLE idem_outbox RENAME COLUMN fence TO claim;
