-- The records of the store on MariaDB and MySQL (protocol.md §2): one row each. All moments are milliseconds since the
-- Unix epoch by the server's clock (idem_now()), so that no session's time zone changes one; durations are
-- milliseconds. Texts are VARBINARY: they are compared byte by byte, and no collation makes two scopes equal.

-- Statements name only the columns that they change, so all others have a DEFAULT. If a row were ever made by the
-- defaults, it would have another record_sum, and so be damaged.
CREATE TABLE idem_slots (
  id BINARY(16) NOT NULL,                -- keyed digest of (scope, operation, key); the raw key is not stored
  state TINYINT UNSIGNED NOT NULL DEFAULT 0,
                                         -- 1 pending, 2 in_progress, 3 completed, 4 failed_retryable, 5 unknown, 6 expired
  due_at BIGINT NOT NULL DEFAULT 0,      -- when time ends the state; 9223372036854775807: never
  scope VARBINARY(255) NOT NULL DEFAULT '',
  operation VARBINARY(255) NOT NULL DEFAULT '',
  generation BIGINT UNSIGNED NOT NULL DEFAULT 0, -- of the identity at its making: which secret made id and fingerprint
  fingerprint VARBINARY(36) NOT NULL DEFAULT '', -- version (4 bytes, big-endian), then the digest
  fence BIGINT UNSIGNED NOT NULL DEFAULT 0, -- of the last attempt; 0: there was none
  token BINARY(16) NOT NULL DEFAULT '',  -- of the same attempt; all zeros: none, or forgotten on purpose
  owner VARBINARY(2048) NOT NULL DEFAULT '',
  locked_until BIGINT NOT NULL DEFAULT 0, -- end of the lease; pending: no claim before it
  dispatched TINYINT UNSIGNED NOT NULL DEFAULT 0,  -- 1: the first byte may have been sent
  lease_policy TINYINT UNSIGNED NOT NULL DEFAULT 0, -- what ends an expired lease: 1 unknown, 2 resume, 3 rerun
  retention BIGINT NOT NULL DEFAULT 0,
  tombstone BIGINT NOT NULL DEFAULT 0,
  charged BIGINT UNSIGNED NOT NULL DEFAULT 0,      -- bytes that it counts in its scope's quota; 0: it does not count
  recovery_point VARBINARY(2048) NOT NULL DEFAULT '',
  release_basis TINYINT UNSIGNED NOT NULL DEFAULT 0, -- 0 none, 1 proven, 2 declared
  last_error_code VARBINARY(2048) NOT NULL DEFAULT '',
  reconcile_after BIGINT,
  reconcile_attempts INT UNSIGNED NOT NULL DEFAULT 0,
  upstream_reference BLOB NOT NULL DEFAULT (''),
  provider VARBINARY(255) NOT NULL DEFAULT '',
  sealed_key BLOB NOT NULL DEFAULT (''),
  contested TINYINT UNSIGNED NOT NULL DEFAULT 0,   -- 1: evidence says that this attempt ran, and could not be applied
  created_at BIGINT NOT NULL DEFAULT 0,
  changed_at BIGINT NOT NULL DEFAULT 0,  -- last change of state
  completed_at BIGINT,
  expires_at BIGINT,
  tombstone_until BIGINT,
  has_request TINYINT UNSIGNED NOT NULL DEFAULT 0, -- 1: `request` is the stored request of an asynchronous key
  answer_status SMALLINT UNSIGNED,       -- of a stored answer
  body_kept TINYINT UNSIGNED,            -- 0: the body was too large to store; the work ran
  record_sum INT UNSIGNED NOT NULL,      -- CRC-32 of all columns above (idem_seal)
  answer_head LONGBLOB,                  -- status and fields, framed (core/record/stored_response_codec.hpp)
  answer_body LONGBLOB,
  answer_sum INT UNSIGNED,               -- CRC-32 of id, length of head (8 bytes, big-endian), head and body
  request LONGBLOB,
  request_sum INT UNSIGNED,              -- CRC-32 of id and request
  PRIMARY KEY (id),
  KEY idem_due (state, due_at)           -- sweeper, reaper, and lists of the rare states
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Requests that wait for a dispatcher, and from when on; a row changes with its record.
CREATE TABLE idem_waiting (
  id BINARY(16) NOT NULL,
  claim_at BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY idem_claim_at (claim_at)
) ENGINE=InnoDB;

-- Every decision by evidence, also a refused one; it outlives its record.
CREATE TABLE idem_evidence (
  line BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  id BINARY(16) NOT NULL,
  entry LONGBLOB NOT NULL,               -- core/record/stored_evidence.hpp, with its checksum behind it
  PRIMARY KEY (line),
  KEY idem_evidence_of (id, line)
) ENGINE=InnoDB;

-- How records get their names (protocol.md §2), and what the store must remember when records are gone; one row.
CREATE TABLE idem_identity (
  one TINYINT UNSIGNED NOT NULL,
  store_id BINARY(16) NOT NULL,
  generation BIGINT UNSIGNED NOT NULL,   -- every reserve compares it under a shared lock of this row
  own_secret BINARY(32) NOT NULL,        -- the store's own; idem_record_id() makes handles by it
  by_operation TINYINT UNSIGNED NOT NULL, -- 0: the operation is no part of a record's name
  is_own TINYINT UNSIGNED NOT NULL,      -- 0: records are named under a secret that the database does not know
  former_names LONGBLOB NOT NULL,        -- operations that have, or are, a former name: a line feed, then each with one
                                         -- behind it; their keys may lie under several names
  value LONGBLOB NOT NULL,               -- the identity as the program records it; the columns above repeat parts of it
  PRIMARY KEY (one)
) ENGINE=InnoDB;

-- The highest fence of records that are gone; one row, apart, so that the reaper holds up no reserve.
CREATE TABLE idem_fence (
  one TINYINT UNSIGNED NOT NULL,
  highest BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (one)
) ENGINE=InnoDB;

-- What the records of each scope with a quota use, in several rows, so that transactions seldom wait for each other's
-- count; the scope has their sum. A gateway's connection counts in a row from 1 to 32, a service's transaction in one
-- from 33 to 64 (by CONNECTION_ID()). A transaction that makes a record where the number or the rate of keys is limited
-- first locks the row 0, and so is the only one of its scope.
CREATE TABLE idem_usage (
  scope VARBINARY(255) NOT NULL,
  session BIGINT UNSIGNED NOT NULL,
  active BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  next_key BIGINT NOT NULL,              -- microseconds; the highest of the scope's rows counts
  PRIMARY KEY (scope, session)
) ENGINE=InnoDB;

-- Journals: append-only lists of lines by name (include/idem/journal.hpp). A line is appended only behind the one that
-- its writer knows as the last; the audit trail is such a list, and is never dropped.
CREATE TABLE idem_journal (
  name VARBINARY(255) NOT NULL,
  seq BIGINT UNSIGNED NOT NULL,          -- 1, 2, 3 and so on in each journal
  at BIGINT NOT NULL,                    -- when it was appended
  line LONGBLOB NOT NULL,
  total BIGINT UNSIGNED NOT NULL,        -- bytes of the journal's lines up to this one, so that a listing reads one row
  checksum INT UNSIGNED NOT NULL,        -- CRC-32 of name, a zero byte, seq and at (8 bytes each, big-endian), line
  PRIMARY KEY (name, seq)
) ENGINE=InnoDB;

CREATE TRIGGER idem_journal_is_never_changed BEFORE UPDATE ON idem_journal FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'idem: a line of a journal is never changed';

CREATE TRIGGER idem_audit_is_never_dropped BEFORE DELETE ON idem_journal FOR EACH ROW
BEGIN
  IF LEFT(OLD.name, 5) = 'audit' THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'idem: the audit trail is never dropped';
  END IF;
END;
