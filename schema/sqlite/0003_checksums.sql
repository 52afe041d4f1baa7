-- Checksums (src/core/bytes/checksum.hpp) of what decides but is no record.
ALTER TABLE idem_meta ADD COLUMN checksum INTEGER;      -- over name and value; a start compares it
ALTER TABLE idem_evidence ADD COLUMN checksum INTEGER;  -- over the line and its record's id; NULL: an older line
