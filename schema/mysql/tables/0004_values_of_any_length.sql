-- A record takes the same values as on all other stores: the operation of a route without a name is a method and a path
-- of up to 8 KiB, and the texts of a service have no bound of their own. No index holds one of these columns.
ALTER TABLE idem_slots
  MODIFY scope LONGBLOB NOT NULL DEFAULT (''),
  MODIFY operation LONGBLOB NOT NULL DEFAULT (''),
  MODIFY owner LONGBLOB NOT NULL DEFAULT (''),
  MODIFY recovery_point LONGBLOB NOT NULL DEFAULT (''),
  MODIFY last_error_code LONGBLOB NOT NULL DEFAULT (''),
  MODIFY upstream_reference LONGBLOB NOT NULL DEFAULT (''),
  MODIFY provider LONGBLOB NOT NULL DEFAULT (''),
  MODIFY sealed_key LONGBLOB NOT NULL DEFAULT ('');
