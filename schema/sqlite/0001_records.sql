-- The embedded store's schema, version 1 (protocol.md §2). Moments and lengths are milliseconds;
-- moments count from the Unix epoch by the store's own clock. Enumerations hold the numbers of
-- include/idem/record.hpp. Rowid tables: appending rows and finding them by a separate index was
-- measured four times as fast as WITHOUT ROWID with random keys.

CREATE TABLE slots (
  slot INTEGER PRIMARY KEY,              -- place of the record; names its rows in the other tables
  id BLOB NOT NULL,                      -- keyed digest of (scope, operation, key): the raw key is never stored
  scope TEXT NOT NULL,                   -- for the operator's listings, never for finding
  operation TEXT NOT NULL,               -- likewise
  fingerprint_version INTEGER NOT NULL,  -- rules that made the fingerprint; they may change under a record
  fingerprint BLOB NOT NULL,             -- what was asked; kept in tombstones, so that misuse still shows
  created_at INTEGER NOT NULL,           -- first moment of the record, for listings by age
  state INTEGER NOT NULL,                -- decides everything; see transitions.hpp
  fence INTEGER NOT NULL,                -- current or last attempt; 0 before the first
  token BLOB NOT NULL,                   -- the asker's proof that the attempt is its own
  owner TEXT NOT NULL,                   -- node, for people
  locked_until INTEGER NOT NULL,         -- in_progress: end of the lease; pending: not to be claimed before
  dispatched INTEGER NOT NULL,           -- 0 is the proof that nothing was sent
  lease_policy INTEGER NOT NULL,         -- stored, so that every sweeper agrees
  retention INTEGER NOT NULL,            -- stored, so that every settle agrees
  tombstone INTEGER NOT NULL,            -- likewise
  recovery_point TEXT NOT NULL,          -- last phase that committed
  request_stored INTEGER NOT NULL,       -- 1: a row in requests; spares the look for all others
  release_basis INTEGER,                 -- proven or declared; counted apart
  last_error_code TEXT NOT NULL,         -- why the last attempt ended without an answer
  reconcile_after INTEGER,               -- unknown: when evidence will be looked for
  reconcile_attempts INTEGER NOT NULL,   -- how often it was
  upstream_reference TEXT NOT NULL,      -- the provider's id, for the reconciler
  changed_at INTEGER NOT NULL,           -- "unknown since", "released at"
  completed_at INTEGER,                  -- told to those who come after the expiry
  expires_at INTEGER,                    -- end of the replays; pending: of the wait
  tombstone_until INTEGER,               -- end of the tombstone
  due_at INTEGER                         -- when sweeper or reaper must look; none: only an event helps
) STRICT;

-- Running rows (state 2) are in no index: the file's owner keeps them in memory, where it finds them
-- by id and by lease (running_rows.hpp). A reserve then appends to one table, and a settling verb
-- enters each index once.
CREATE UNIQUE INDEX slots_by_id ON slots (id) WHERE state <> 2;

-- One index for sweeper, reaper and the counts by state.
CREATE INDEX slots_by_due ON slots (state, due_at) WHERE state <> 2;

-- Partial: they cost nothing to the rows that are in neither state.
CREATE INDEX slots_claimable ON slots (locked_until, id) WHERE state = 1;
CREATE INDEX slots_unknown ON slots (id) WHERE state = 5;

-- Apart from the slots, which stay small and are rewritten often.
CREATE TABLE responses (
  slot INTEGER PRIMARY KEY,
  status INTEGER NOT NULL,
  whole INTEGER NOT NULL,                -- 0: the body crossed the limit and was not kept
  fields BLOB NOT NULL,                  -- stored_response_codec.hpp; begins with its version
  body BLOB NOT NULL                     -- byte for byte
) STRICT;

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

-- Identity, fences and clock: what must outlive every record.
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;
