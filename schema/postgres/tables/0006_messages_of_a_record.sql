-- An operator reads the messages of one record; without an index each such page would read all payloads.
CREATE INDEX outbox_of_record ON idem.outbox (operation);
