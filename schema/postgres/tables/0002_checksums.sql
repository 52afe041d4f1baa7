-- Tells bytes that a medium has damaged from those that were stored (protocol.md §22).
ALTER TABLE idem.slots ADD COLUMN checksum bytea; -- idem.checksum() of the stored answer, before that of the stored request;
                                                  -- none: there is neither, or it was stored before this column was made
