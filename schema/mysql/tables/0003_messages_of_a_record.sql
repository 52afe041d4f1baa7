-- An operator reads the messages of one record; without an index each such page would read all payloads.
CREATE INDEX idem_outbox_of_record ON idem_outbox (operation);
