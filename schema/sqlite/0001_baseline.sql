-- The embedded store's tables (protocol.md §2). A record is in one of two tables, and moves between them
-- in one transaction: in `idem_running` while it is in_progress, in `idem_slots` otherwise.
-- Its members are bytes (stored_record_codec.hpp); a column repeats one of them only for an index.
-- Moments are milliseconds since the Unix epoch by the store's own clock; enumerations hold the
-- numbers of include/idem/record.hpp. Rowid tables: appending rows and finding them by a separate
-- index was measured four times as fast as WITHOUT ROWID with random keys. Names begin with `idem_`,
-- because a service may keep its business tables in the same file, for one commit of both
-- (protocol.md §17).

-- The running records. A start reads them all and keeps them in memory (running_rows.hpp), so there is
-- no index. Cells are used again: the table has as many as records ever ran at once.
CREATE TABLE idem_running (
  cell INTEGER PRIMARY KEY,
  id BLOB NOT NULL,                      -- with a checksum of its own: a damaged record still blocks its key
  slot INTEGER NOT NULL,                 -- the record's number; 0: none yet
  record BLOB NOT NULL
) STRICT;

-- The records that do not run.
CREATE TABLE idem_slots (
  slot INTEGER PRIMARY KEY,              -- number of the record, for as long as it lives; names its request
  id BLOB NOT NULL,                      -- keyed digest of (scope, operation, key): the raw key is never stored
  state INTEGER NOT NULL,                -- as in the record; any other value is a damaged row
  due_at INTEGER,                        -- when sweeper or reaper must act; NULL: only an event or operator does
  claim_at INTEGER,                      -- pending: no claim before this
  record BLOB NOT NULL,
  answer BLOB,                           -- completed: stored_response_codec.hpp
  body BLOB                              -- the answer's body; the last column, so that reads of others skip it
) STRICT;

-- For sweeper, reaper and the counts by state. It contains the ids as a second copy that a start
-- compares with the rows; the slot before them lets the index grow at its end only. The store finds records
-- by an index in memory (id_index.hpp): one in the file cost every settling write a page of its own,
-- because ids are digests and spread over the whole index.
CREATE INDEX slots_by_due ON idem_slots (state, due_at, slot, id);

-- Partial: rows of other states cost nothing. They list the records that an event may be about without
-- reading all records.
CREATE INDEX slots_claimable ON idem_slots (claim_at, id) WHERE state = 1;
CREATE INDEX slots_pending ON idem_slots (id) WHERE state = 1;
CREATE INDEX slots_retryable ON idem_slots (id) WHERE state = 4;
CREATE INDEX slots_unknown ON idem_slots (id) WHERE state = 5;

CREATE TABLE idem_requests (
  slot INTEGER PRIMARY KEY,
  request BLOB NOT NULL                  -- the stored request, for the dispatcher
) STRICT;

-- Every decision on evidence, also a refusal; outlives its record.
CREATE TABLE idem_evidence (
  line INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL,
  fence INTEGER NOT NULL,                -- the attempt that the evidence is about
  source TEXT NOT NULL,
  evidence TEXT NOT NULL,
  reason TEXT NOT NULL,
  before_state INTEGER NOT NULL,         -- 0: there was no record
  after_state INTEGER NOT NULL,
  applied INTEGER NOT NULL,              -- 0: kept, but the record did not change
  observed_at INTEGER NOT NULL,          -- by its source
  recorded_at INTEGER NOT NULL
) STRICT;

CREATE INDEX evidence_by_id ON idem_evidence (id, line);

CREATE TRIGGER evidence_is_never_changed BEFORE UPDATE ON idem_evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_is_never_dropped BEFORE DELETE ON idem_evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
-- INSERT OR REPLACE deletes the old row without firing the trigger above.
CREATE TRIGGER evidence_is_never_replaced BEFORE INSERT ON idem_evidence
WHEN EXISTS (SELECT 1 FROM idem_evidence WHERE line = NEW.line)
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;

-- Identity, fences and clock: they outlive every record.
CREATE TABLE idem_meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- The route table that was adopted last, in its order.
CREATE TABLE idem_route_names (
  position INTEGER PRIMARY KEY,
  methods TEXT NOT NULL,                 -- separated by spaces; empty: all
  pattern TEXT NOT NULL,
  name TEXT NOT NULL,                    -- empty: each method and path is its own operation
  formerly TEXT NOT NULL                 -- separated by line feeds, which no name holds
) STRICT;

-- The secrets of ids and fingerprints: each is used from its generation until the next row's.
CREATE TABLE idem_digest_secrets (
  generation INTEGER PRIMARY KEY,
  id TEXT NOT NULL                       -- a keyed digest of the secret, never the secret
) STRICT;

-- Messages that a service sends about its work, and work in phases (protocol.md §18, §16). The business
-- transaction writes both. Moments are milliseconds by the store's own clock: idem_now().

-- The first columns have the names that Debezium's outbox router looks for.
CREATE TABLE idem_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the commits: there is one writer
  id TEXT NOT NULL UNIQUE,               -- the receiver recognises a repeated delivery by it
  aggregatetype TEXT NOT NULL,
  aggregateid TEXT NOT NULL,             -- messages of one aggregate (type, id) leave in order; empty: in any order
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  content_type TEXT NOT NULL,
  destination TEXT NOT NULL,             -- its name in the relays' configuration
  operation TEXT NOT NULL,               -- the record whose work wrote it
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,               -- waiting: no claim before; claimed: end of the claim
  attempts INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,      -- number of the last claim: an older claim can note nothing
  claimed INTEGER NOT NULL DEFAULT 0,    -- a relay has it until due_at
  in_flight INTEGER NOT NULL DEFAULT 0,  -- it may have been sent since the last note
  ambiguous INTEGER NOT NULL DEFAULT 0,  -- an attempt may have arrived; its outcome is unknown
  quiet_since INTEGER,                   -- ambiguous: no attempt can be under way since then
  first_at INTEGER,                      -- ambiguous: no attempt arrived before this
  repeat_until INTEGER,                  -- until then the destination recognises a repeat
  reference TEXT NOT NULL DEFAULT '',    -- the receiver's name for it; noted with the delivery, never later
  last_error TEXT NOT NULL DEFAULT '',
  history TEXT NOT NULL DEFAULT '[]',    -- of each attempt and decision: at, how, why
  ended_at INTEGER
) STRICT;
CREATE INDEX idem_outbox_due ON idem_outbox (destination, due_at, seq) WHERE state = 'waiting';
CREATE INDEX idem_outbox_in_order ON idem_outbox (destination, aggregatetype, aggregateid, seq)
  WHERE state = 'waiting' AND aggregateid <> '';
CREATE INDEX idem_outbox_ended ON idem_outbox (state, ended_at, seq) WHERE state <> 'waiting';

-- One row per unfinished work, from the commit of its reserve to that of its completion: a completer continues by it
-- if the client never comes back. The record alone decides whether an attempt may continue.
CREATE TABLE idem_flows (
  id TEXT PRIMARY KEY,                   -- the record's
  operation TEXT NOT NULL,
  input BLOB NOT NULL,                   -- the request (src/library/flow_input.hpp): all attempts work on it
  point TEXT NOT NULL,                   -- the last phase that committed: written with the record's recovery point
  next TEXT NOT NULL,                    -- name of the next phase at that time: only this phase may have sent calls;
                                         -- empty: unknown
  point_at INTEGER NOT NULL,             -- the next phase sent nothing before this
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,               -- when a completer looks at its record
  quiet_since INTEGER,                   -- an earlier attempt may have sent the next phase's call; none can be sending
                                         -- since then
  token TEXT NOT NULL,                   -- of the current attempt; an older attempt can note nothing
  nothing_open INTEGER NOT NULL          -- 1: certainly no call is open. Each call is noted before it is made; or the
                                         -- attempt has ended; or the record is unknown, and a new execution needs
                                         -- evidence
) STRICT, WITHOUT ROWID;
CREATE INDEX idem_flows_due ON idem_flows (operation, due_at);

-- Each scope's usage of its quota (src/core/transitions/quota.hpp), written in the transaction of its records.
CREATE TABLE idem_usage (
  scope TEXT PRIMARY KEY,
  active INTEGER NOT NULL,               -- records that have not expired
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
