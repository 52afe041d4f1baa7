-- Journals: append-only lists of lines by name (include/idem/journal.hpp). A line is appended only behind the one that
-- its writer knows as the last; the audit trail is such a list, and is never dropped.
CREATE TABLE idem_journal (
  name TEXT NOT NULL,
  seq INTEGER NOT NULL,                  -- 1, 2, 3 and so on in each journal
  at INTEGER NOT NULL,                   -- when it was appended, by the store's clock
  line BLOB NOT NULL,
  total INTEGER NOT NULL,                -- bytes of the journal's lines up to this one, so that a listing reads one row
  checksum INTEGER NOT NULL,             -- over name, seq, at and line
  PRIMARY KEY (name, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER journal_is_never_changed BEFORE UPDATE ON idem_journal
BEGIN SELECT RAISE(ABORT, 'a line of a journal is never changed'); END;
CREATE TRIGGER audit_is_never_dropped BEFORE DELETE ON idem_journal WHEN OLD.name GLOB 'audit*'
BEGIN SELECT RAISE(ABORT, 'the audit trail is never dropped'); END;
-- INSERT OR REPLACE deletes the old row without firing the trigger above.
CREATE TRIGGER journal_is_never_replaced BEFORE INSERT ON idem_journal
WHEN EXISTS (SELECT 1 FROM idem_journal WHERE name = NEW.name AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'a line of a journal is never changed'); END;
