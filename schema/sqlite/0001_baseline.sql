-- The embedded store's tables (protocol.md §2). A record lies in one of two, and moves between them in
-- one transaction: in `idem_running` while it is in_progress, in `idem_slots` otherwise.
-- Its members are bytes (stored_record_codec.hpp); a column stands beside them only for an index.
-- Moments are milliseconds since the Unix epoch by the store's own clock; enumerations hold the
-- numbers of include/idem/record.hpp. Rowid tables: appending rows and finding them by a separate
-- index was measured four times as fast as WITHOUT ROWID with random keys. The tables have a name of ours
-- before them, because a service's business tables may lie in the same file: only so is one commit of both
-- (protocol.md §17).

-- What runs. Read whole at a start, and kept in memory from then on (running_rows.hpp), so there is
-- no index. Cells are used again: the table is as small as the most that ever ran at once.
CREATE TABLE idem_running (
  cell INTEGER PRIMARY KEY,
  id BLOB NOT NULL,                      -- apart, with a checksum: what cannot be read still stands in its key's way
  slot INTEGER NOT NULL,                 -- the record's number; 0: none yet
  record BLOB NOT NULL
) STRICT;

-- What does not run.
CREATE TABLE idem_slots (
  slot INTEGER PRIMARY KEY,              -- number of the record, for as long as it lives; names its request
  id BLOB NOT NULL,                      -- keyed digest of (scope, operation, key): the raw key is never stored
  state INTEGER NOT NULL,                -- as in the record; any other is a corrupt row
  due_at INTEGER,                        -- when sweeper or reaper must look; none: only an event helps
  claim_at INTEGER,                      -- pending: not to be claimed before
  record BLOB NOT NULL,
  answer BLOB,                           -- completed: stored_response_codec.hpp
  body BLOB                              -- with it, byte for byte; last, so that others never read past it
) STRICT;

-- For sweeper, reaper and the counts by state. It has the ids, too, as a second copy that a start
-- compares with the rows; the slot before them keeps it growing at its end only. Records are found by an
-- index in memory (id_index.hpp): one in the file cost every settling write a page of its own, because
-- ids are digests and so spread over all of it.
CREATE INDEX slots_by_due ON idem_slots (state, due_at, slot, id);

-- Partial: they cost nothing to the rows of other states. What an event may be about is found by them
-- without a walk through all records.
CREATE INDEX slots_claimable ON idem_slots (claim_at, id) WHERE state = 1;
CREATE INDEX slots_pending ON idem_slots (id) WHERE state = 1;
CREATE INDEX slots_retryable ON idem_slots (id) WHERE state = 4;
CREATE INDEX slots_unknown ON idem_slots (id) WHERE state = 5;

CREATE TABLE idem_requests (
  slot INTEGER PRIMARY KEY,
  request BLOB NOT NULL                  -- what the dispatcher will send
) STRICT;

-- Every decision by evidence, also the refused ones; outlives its record.
CREATE TABLE idem_evidence (
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

CREATE INDEX evidence_by_id ON idem_evidence (id, line);

CREATE TRIGGER evidence_is_never_changed BEFORE UPDATE ON idem_evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_is_never_dropped BEFORE DELETE ON idem_evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
-- INSERT OR REPLACE takes the old row away without asking the trigger above.
CREATE TRIGGER evidence_is_never_replaced BEFORE INSERT ON idem_evidence
WHEN EXISTS (SELECT 1 FROM idem_evidence WHERE line = NEW.line)
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;

-- Identity, fences and clock: what must outlive every record.
CREATE TABLE idem_meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- The route table that was adopted last, in its order.
CREATE TABLE idem_route_names (
  position INTEGER PRIMARY KEY,
  methods TEXT NOT NULL,                 -- separated by spaces; none: all
  pattern TEXT NOT NULL,
  name TEXT NOT NULL,                    -- empty: each method and path is its own operation
  formerly TEXT NOT NULL                 -- separated by line feeds, which no name holds
) STRICT;

-- Which secret ids and fingerprints are made under: from each generation on, until the next row's.
CREATE TABLE idem_digest_secrets (
  generation INTEGER PRIMARY KEY,
  id TEXT NOT NULL                       -- a keyed digest of the secret, never the secret
) STRICT;

-- Messages that a service sends because of what it did, and work that is split into phases (protocol.md
-- §18, §16). Both are written in the business transaction. Moments are milliseconds by the store's own clock, which
-- idem_now() is.

-- The first columns have the names that Debezium's outbox router looks for.
CREATE TABLE idem_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the commits: there is one writer
  id TEXT NOT NULL UNIQUE,               -- what the receiver tells a repeated delivery by
  aggregatetype TEXT NOT NULL,
  aggregateid TEXT NOT NULL,             -- with its type: messages of one leave in their order; empty: in any
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  content_type TEXT NOT NULL,
  destination TEXT NOT NULL,             -- its name in the relays' configuration
  operation TEXT NOT NULL,               -- the record whose work sends it
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,               -- waiting: not before; in flight: when the claim ends
  attempts INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,      -- of the last claim: an older one notes nothing any more
  claimed INTEGER NOT NULL DEFAULT 0,    -- until due_at a relay has it
  in_flight INTEGER NOT NULL DEFAULT 0,  -- since the last note it may have been sent
  ambiguous INTEGER NOT NULL DEFAULT 0,  -- an attempt may have arrived; nobody knows
  quiet_since INTEGER,                   -- ambiguous: since when none of them can be under way any more
  first_at INTEGER,                      -- ambiguous: none of them arrived before this
  repeat_until INTEGER,                  -- until when the destination takes a repeat for what it is
  reference TEXT NOT NULL DEFAULT '',    -- what the receiver calls it; noted with the delivery, never after it
  last_error TEXT NOT NULL DEFAULT '',
  history TEXT NOT NULL DEFAULT '[]',    -- of each attempt and decision: at, how, why
  ended_at INTEGER
) STRICT;
CREATE INDEX idem_outbox_due ON idem_outbox (destination, due_at, seq) WHERE state = 'waiting';
CREATE INDEX idem_outbox_in_order ON idem_outbox (destination, aggregatetype, aggregateid, seq)
  WHERE state = 'waiting' AND aggregateid <> '';
CREATE INDEX idem_outbox_ended ON idem_outbox (state, ended_at, seq) WHERE state <> 'waiting';

-- One row from the reserve's commit to the completion's, with what a completer needs to go on with the work when its
-- client never comes back. Whether somebody may is said by the record alone; this is only what there is to do.
CREATE TABLE idem_flows (
  id TEXT PRIMARY KEY,                   -- the record's
  operation TEXT NOT NULL,
  input BLOB NOT NULL,                   -- what was asked (src/library/flow_input.hpp): all attempts work on this
  point TEXT NOT NULL,                   -- the last phase that committed: written with the record's own
  next TEXT NOT NULL,                    -- the phase behind it, as it was named then: what may have been sent, was sent
                                         -- by this one; empty: not known
  point_at INTEGER NOT NULL,             -- nothing of the next phase was sent before this
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,               -- when a completer looks at its record
  quiet_since INTEGER,                   -- an earlier attempt may have sent what the next phase sends; none of them
                                         -- can be sending since then
  token TEXT NOT NULL,                   -- of the attempt that has it; an older one notes nothing any more
  nothing_open INTEGER NOT NULL          -- known: no call may have been made. It is noted before each, or the attempt
                                         -- has ended, or its record is unknown, and who executes it again has had
                                         -- evidence
) STRICT, WITHOUT ROWID;
CREATE INDEX idem_flows_due ON idem_flows (operation, due_at);

-- What the counted records of each scope take of its quota (src/core/transitions/quota.hpp), written in the transaction
-- of the records.
CREATE TABLE idem_usage (
  scope TEXT PRIMARY KEY,
  active INTEGER NOT NULL,               -- records that have not expired
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
