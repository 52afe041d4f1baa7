-- Journals: append-only lists of lines by name (include/idem/journal.hpp). A line is appended only behind the one that
-- its writer knows as the last; the audit trail is such a list, and is never dropped.
CREATE TABLE idem.journal (
  name text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,                   -- 1, 2, 3 and so on in each journal
  at timestamptz NOT NULL,               -- when it was appended
  line bytea NOT NULL,
  total bigint NOT NULL,                 -- bytes of the journal's lines up to this one, so that a listing reads one row
  checksum bytea NOT NULL,               -- idem.journal_checksum()
  PRIMARY KEY (name, seq)
);
-- Without any policy: only the owner of the table and roles with BYPASSRLS see or write lines, whatever rights others
-- have on all tables of the schema.
ALTER TABLE idem.journal ENABLE ROW LEVEL SECURITY;
