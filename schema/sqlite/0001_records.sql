-- The embedded store's schema, version 1 (protocol.md §2). A record lies in one of two tables, and
-- moves between them in one transaction: in `running` while it is in_progress, in `slots` otherwise.
-- Its members are bytes (stored_record_codec.hpp); a column stands beside them only for an index.
-- Moments are milliseconds since the Unix epoch by the store's own clock; enumerations hold the
-- numbers of include/idem/record.hpp. Rowid tables: appending rows and finding them by a separate
-- index was measured four times as fast as WITHOUT ROWID with random keys.

-- What runs. Read whole at a start, and kept in memory from then on (running_rows.hpp), so there is
-- no index. Cells are used again: the table is as small as the most that ever ran at once.
CREATE TABLE running (
  cell INTEGER PRIMARY KEY,
  id BLOB NOT NULL,                      -- apart: what cannot be read still stands in its key's way
  slot INTEGER NOT NULL,                 -- the record's number; 0: none yet
  record BLOB NOT NULL
) STRICT;

-- What does not run.
CREATE TABLE slots (
  slot INTEGER PRIMARY KEY,              -- number of the record, for as long as it lives; names its request
  id BLOB NOT NULL,                      -- keyed digest of (scope, operation, key): the raw key is never stored
  state INTEGER NOT NULL,                -- as in the record; any other is a corrupt row
  due_at INTEGER,                        -- when sweeper or reaper must look; none: only an event helps
  claim_at INTEGER,                      -- pending: not to be claimed before
  record BLOB NOT NULL,
  answer BLOB,                           -- completed: stored_response_codec.hpp
  body BLOB                              -- with it, byte for byte; last, so that others never read past it
) STRICT;

CREATE UNIQUE INDEX slots_by_id ON slots (id);

-- One index for sweeper, reaper and the counts by state.
CREATE INDEX slots_by_due ON slots (state, due_at);

-- Partial: they cost nothing to the rows that are in neither state.
CREATE INDEX slots_claimable ON slots (claim_at, id) WHERE state = 1;
CREATE INDEX slots_unknown ON slots (id) WHERE state = 5;

CREATE TABLE requests (
  slot INTEGER PRIMARY KEY,
  request BLOB NOT NULL                  -- what the dispatcher will send
) STRICT;

-- Every decision by evidence, also the refused ones; outlives its record.
CREATE TABLE evidence (
  line INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL,
  fence INTEGER NOT NULL,                -- the attempt it speaks of
  source TEXT NOT NULL,
  evidence TEXT NOT NULL,
  reason TEXT NOT NULL,
  before_state INTEGER NOT NULL,         -- 0: there was no record
  after_state INTEGER NOT NULL,
  applied INTEGER NOT NULL,              -- 0: kept, but it changed nothing
  observed_at INTEGER NOT NULL,          -- by its source
  recorded_at INTEGER NOT NULL
) STRICT;

CREATE INDEX evidence_by_id ON evidence (id, line);

CREATE TRIGGER evidence_is_never_changed BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_is_never_dropped BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
-- INSERT OR REPLACE takes the old row away without asking the trigger above.
CREATE TRIGGER evidence_is_never_replaced BEFORE INSERT ON evidence
WHEN EXISTS (SELECT 1 FROM evidence WHERE line = NEW.line)
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;

-- Identity, fences and clock: what must outlive every record.
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;
