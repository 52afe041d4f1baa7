-- Shows bytes that a medium has damaged (protocol.md §22).
ALTER TABLE idem.slots ADD COLUMN checksum bytea; -- idem.checksum() of the stored answer, before that of the stored
                                                  -- request; NULL: there is neither, or it is older than this column
