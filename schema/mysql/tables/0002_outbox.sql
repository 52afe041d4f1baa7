-- Messages of services (protocol.md §18), and work in phases (§16). The business transaction writes both.

-- The first columns have the names that Debezium's outbox router expects.
CREATE TABLE idem_outbox (
  seq BIGINT NOT NULL AUTO_INCREMENT,    -- in commit order within one aggregate (idem_put_message)
  id BINARY(16) NOT NULL,                -- by which the receiver recognises a repeat
  aggregatetype VARBINARY(255) NOT NULL,
  aggregateid VARBINARY(255) NOT NULL,   -- with its type: one aggregate's messages are sent in order; empty: any
  type VARBINARY(255) NOT NULL,
  payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  content_type VARBINARY(255) NOT NULL,
  destination VARBINARY(255) NOT NULL,   -- its name in the relays' configuration
  operation BINARY(16) NOT NULL,         -- the record's id
  state ENUM('waiting', 'delivered', 'dead', 'discarded') CHARACTER SET ascii NOT NULL DEFAULT 'waiting',
  created_at BIGINT NOT NULL,
  due_at BIGINT NOT NULL,                -- waiting: not sent before; in flight: end of the claim
  attempts INT NOT NULL DEFAULT 0,
  claim BIGINT NOT NULL DEFAULT 0,       -- number of the last one: an older one can note nothing
  claimed TINYINT NOT NULL DEFAULT 0,    -- a relay has it until due_at
  in_flight TINYINT NOT NULL DEFAULT 0,  -- it may have been sent since the last note
  ambiguous TINYINT NOT NULL DEFAULT 0,  -- an attempt may have arrived
  no_call_in_flight_since BIGINT,        -- ambiguous: since when no attempt can be in flight
  first_at BIGINT,                       -- ambiguous: no attempt arrived before it
  repeat_until BIGINT,                   -- until when the destination recognises a repeat
  reference VARBINARY(1024) NOT NULL DEFAULT '', -- the receiver's name of it; noted with the delivery
  last_error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  history LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, -- each attempt and decision: at, how, why
  ended_at BIGINT,
  PRIMARY KEY (seq),
  UNIQUE KEY idem_outbox_id (id),
  KEY idem_outbox_due (state, destination, due_at, seq),
  KEY idem_outbox_in_order (state, destination, aggregatetype, aggregateid, seq),
  KEY idem_outbox_ended (state, ended_at, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Rows to lock: a transaction that sends about an aggregate has the row of the aggregate's hash until its end.
CREATE TABLE idem_outbox_locks (
  slot SMALLINT UNSIGNED NOT NULL,
  PRIMARY KEY (slot)
) ENGINE=InnoDB;

INSERT IGNORE INTO idem_outbox_locks
  WITH RECURSIVE digits AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM digits WHERE n < 63)
  SELECT a.n * 64 + b.n FROM digits a CROSS JOIN digits b;

-- One row from the reserve's commit to the completion's, with all that a completer needs to continue if the client does
-- not come back. Only the record decides who may continue.
CREATE TABLE idem_flows (
  id BINARY(16) NOT NULL,                -- the record's
  operation VARBINARY(255) NOT NULL,
  input LONGBLOB NOT NULL,               -- the request (src/library/flow_input.hpp), the same for all attempts
  point VARBINARY(255) NOT NULL,         -- the last phase that committed; written with the record's own
  next VARBINARY(255) NOT NULL,          -- the phase behind it by its name then: only this one may have sent
                                         -- something; empty: not known
  point_at BIGINT NOT NULL,              -- the next phase sent nothing before it
  attempts INT NOT NULL,
  due_at BIGINT NOT NULL,                -- when a completer reads its record
  no_call_in_flight_since BIGINT,        -- an earlier attempt may have sent the next phase's call; since then none can
                                         -- be in flight
  token BINARY(16) NOT NULL,             -- of the attempt that has it; an older one can note nothing
  nothing_open TINYINT NOT NULL,         -- 1: no call is open: each is noted before it is made, or the attempt has
                                         -- ended, or its record is unknown and only evidence lets it run again
  PRIMARY KEY (id),
  KEY idem_flows_due (operation, due_at)
) ENGINE=InnoDB;

-- Of a transaction whose connection the work has: a row that is there after its end proves that the work committed it.
CREATE TABLE idem_lent (
  token BINARY(16) NOT NULL,
  PRIMARY KEY (token)
) ENGINE=InnoDB;
