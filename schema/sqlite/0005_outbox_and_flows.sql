-- Version 5: messages that a service sends because of what it did, and work that is split into phases (protocol.md
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
