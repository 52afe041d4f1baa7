-- The shared store's tables and types (protocol.md §2): one row for each record, large answers beside them.
-- All moments are from the database's clock, cut to milliseconds (idem.now()); durations are milliseconds.
-- Only the functions of schema/postgres/functions change a record.

CREATE SCHEMA IF NOT EXISTS idem;

CREATE TYPE idem.state AS ENUM
  ('pending', 'in_progress', 'completed', 'failed_retryable', 'unknown', 'expired');
CREATE TYPE idem.release_basis AS ENUM ('proven', 'declared');
CREATE TYPE idem.lease_policy AS ENUM ('unknown', 'resume', 'rerun');
CREATE TYPE idem.verdict AS ENUM ('done', 'settled', 'stale');
CREATE TYPE idem.message_state AS ENUM ('waiting', 'delivered', 'dead', 'discarded');

-- Fences grow and never repeat in a store, also after their record is gone.
CREATE SEQUENCE idem.fences;
CREATE SEQUENCE idem.answer_numbers CACHE 64;

-- fillfactor: a record changes once, when it is settled, and the new version with its answer finds room in the same
-- page. The only index is the key's, and no index may have a column that changes then. So the update touches no index
-- (HOT), and the next read of the page frees the space of the old version.
CREATE TABLE idem.slots (
  id uuid PRIMARY KEY,                   -- keyed digest of (scope, operation, key); the raw key is not stored
  scope text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,            -- of the identity at its making: which secret made id and fingerprint
  fingerprint bytea NOT NULL,            -- version (4 bytes, big-endian), then the digest
  state idem.state NOT NULL,
  fence bigint NOT NULL,                 -- of the last attempt; 0: there was none
  token uuid NOT NULL,                   -- of the same attempt; all zeros: none, or forgotten on purpose
  owner text COLLATE "C" NOT NULL,
  locked_until timestamptz NOT NULL,     -- end of the lease; pending: no claim before it
  dispatched boolean NOT NULL,           -- the first byte may have been sent
  lease_policy idem.lease_policy NOT NULL, -- what ends an expired lease; stored, so that all sweepers agree
  retention bigint NOT NULL,             -- ms from completion; stored for the same reason
  tombstone bigint NOT NULL,             -- ms after that
  recovery_point text COLLATE "C" NOT NULL DEFAULT '',
  request bytea,                         -- asynchronous: the request that the dispatcher will send
  response_head bytea,                   -- completed: a small answer's status and fields, framed (idem.headers())
  response_body bytea,                   -- of the same answer, byte for byte
  answer bigint,                         -- completed: number of a large answer in idem.answers
  response_status smallint,              -- of a small or large answer
  body_kept boolean,                     -- false: the body was too large to store; the work ran
  release_basis idem.release_basis,
  last_error_code text COLLATE "C" NOT NULL DEFAULT '',
  reconcile_after timestamptz,
  reconcile_attempts integer NOT NULL DEFAULT 0,
  upstream_reference text COLLATE "C" NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,       -- last change of state: the "since" of an unknown
  completed_at timestamptz,
  expires_at timestamptz,
  tombstone_until timestamptz,
  charged bigint NOT NULL DEFAULT 0,     -- bytes that it counts in its scope's quota; 0: it does not count
  contested boolean NOT NULL DEFAULT false, -- evidence says that this attempt ran, and could not be applied
                                         -- (§22): no release frees it
  provider text COLLATE "C",             -- the provider that the reconciler asks, by its name in the settings; kept,
                                         -- because the route may name another one later; NULL: none
  sealed_key bytea                       -- the client's key, if the provider is asked by it; until completion
) WITH (fillfactor = 35, autovacuum_vacuum_scale_factor = 0.05);

-- When sweeper and reaper check records: one row for the records of a batch, committed with them. It decides nothing:
-- they read the record, and leave it alone if it was settled or renewed. Each change of state that time can end adds
-- the record to one of the two tables; only sweeper and reaper take it out.
CREATE TABLE idem.lease_looks (
  due_at timestamptz NOT NULL,           -- when the first may be due; the others are written back
  ids uuid[] NOT NULL                    -- records that run or wait: 256 at most
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX lease_looks_due ON idem.lease_looks (due_at);
CREATE TABLE idem.expiry_looks (
  due_at timestamptz NOT NULL,
  ids uuid[] NOT NULL                    -- records that were settled or that expired
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX expiry_looks_due ON idem.expiry_looks (due_at);
-- Digests do not compress, and 256 of them fit into a page.
ALTER TABLE idem.lease_looks ALTER COLUMN ids SET STORAGE PLAIN;
ALTER TABLE idem.expiry_looks ALTER COLUMN ids SET STORAGE PLAIN;
-- They have no key, and a publication FOR ALL TABLES would refuse deletes from them.
ALTER TABLE idem.lease_looks REPLICA IDENTITY FULL;
ALTER TABLE idem.expiry_looks REPLICA IDENTITY FULL;

-- Records that wait for an event; a row changes with its record, under the record's lock.
CREATE TABLE idem.standing (
  id uuid PRIMARY KEY,
  state idem.state NOT NULL,             -- as the comment below says
  moment timestamptz NOT NULL            -- pending: no claim before it; the others: since when
);
COMMENT ON TABLE idem.standing IS
  'Records that stay as they are until something happens: pending, unknown, failed_retryable (moment: since), and'
  ' in_progress past their lease where a reserve takes them up (moment: its end). A row that its record has outgrown'
  ' counts for nothing.';
CREATE INDEX standing_in_order ON idem.standing (state, moment, id);
CREATE INDEX standing_by_id ON idem.standing (state, id);

-- Answers that are too large for their records, by the day on which they expire: a past day's table is dropped, and no
-- row has to be deleted. Answers of a day without a table go into the last one.
CREATE TABLE idem.answers (
  expires_at timestamptz NOT NULL,
  number bigint NOT NULL,
  head bytea NOT NULL,                   -- status and fields, framed (idem.headers())
  body bytea NOT NULL,                   -- byte for byte
  PRIMARY KEY (expires_at, number)
) PARTITION BY RANGE (expires_at);
CREATE TABLE idem.answers_without_day PARTITION OF idem.answers DEFAULT;

-- Every decision by evidence, also a refused one; it outlives its record.
CREATE TABLE idem.evidence (
  line bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL,
  fence bigint NOT NULL,                 -- of the attempt that it is about
  source text COLLATE "C" NOT NULL,
  evidence text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  before_state idem.state,               -- NULL: there was no record
  after_state idem.state,
  applied boolean NOT NULL,              -- false: it changed nothing
  observed_at timestamptz NOT NULL,      -- by the source's clock
  recorded_at timestamptz NOT NULL
);
CREATE INDEX evidence_by_id ON idem.evidence (id, line);

-- How records get their names (protocol.md §2); one row. Idem refuses a start or a reload that would hide records.
CREATE TABLE idem.identity (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  store_id uuid NOT NULL,                -- of this store alone, for caches elsewhere
  generation bigint NOT NULL CHECK (generation > 0),
  secret bytea NOT NULL,                 -- the store's own, made at its first start, never changed
  key_scope text COLLATE "C" NOT NULL,
  scope_source text COLLATE "C" NOT NULL,
  key_fields text COLLATE "C" NOT NULL DEFAULT '' -- header fields that carry the key; separated by spaces
);

-- The last adopted route table, in its order.
CREATE TABLE idem.route_names (
  position integer PRIMARY KEY,
  methods text COLLATE "C" NOT NULL,     -- separated by spaces; empty: all
  pattern text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,        -- empty: each method and path is its own operation
  formerly text COLLATE "C" NOT NULL     -- former names, separated by line feeds
);

-- The secret that makes ids and fingerprints, from each generation on until the next row's.
CREATE TABLE idem.digest_secrets (
  generation bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL           -- a keyed digest of the secret, never the secret
);

-- One row for each scope and session, so that no transaction waits for another's count: the scope has the sum.
-- Uncommitted counts of others are invisible. So where the number or the rate of keys is limited, a transaction that
-- makes new keys holds a lock of their scope until it ends. A limit of bytes alone needs no lock: concurrent calls may
-- exceed it.
CREATE TABLE idem.usage (
  scope text COLLATE "C" NOT NULL,
  lane integer NOT NULL,                 -- the session's process; 0: the sum of ended sessions
  active bigint NOT NULL,                -- records that have not expired; one session's may be below 0
  bytes bigint NOT NULL,
  PRIMARY KEY (scope, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE idem.rates (
  scope text COLLATE "C" PRIMARY KEY,
  next_key bigint NOT NULL               -- us since the epoch: when the next key is due at the rate
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Messages of services (protocol.md §18). The first columns have the names that Debezium's outbox router expects.
CREATE TABLE idem.outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL UNIQUE,               -- by which the receiver recognises a repeat
  aggregatetype text COLLATE "C" NOT NULL,
  aggregateid text COLLATE "C" NOT NULL, -- with its type: one aggregate's messages are sent in order; empty: any
  type text COLLATE "C" NOT NULL,
  payload text COLLATE "C" NOT NULL,
  content_type text COLLATE "C" NOT NULL,
  destination text COLLATE "C" NOT NULL, -- its name in the relays' configuration
  operation uuid NOT NULL,               -- the record's id
  state idem.message_state NOT NULL DEFAULT 'waiting',
  created_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,           -- waiting: not sent before; in flight: end of the claim
  attempts integer NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,       -- of the last claim: an older one can note nothing
  claimed boolean NOT NULL DEFAULT false, -- a relay has it until due_at
  in_flight boolean NOT NULL DEFAULT false, -- it may have been sent since the last note
  ambiguous boolean NOT NULL DEFAULT false, -- an attempt may have arrived
  quiet_since timestamptz,               -- ambiguous: since when no attempt can be in flight
  first_at timestamptz,                  -- ambiguous: no attempt arrived before it
  repeat_until timestamptz,              -- until when the destination recognises a repeat
  reference text COLLATE "C" NOT NULL DEFAULT '', -- the receiver's name of it; noted with the delivery
  last_error text COLLATE "C" NOT NULL DEFAULT '',
  history jsonb NOT NULL DEFAULT '[]',   -- each attempt and decision: at, how, why
  ended_at timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX outbox_due ON idem.outbox (destination, due_at, seq) WHERE state = 'waiting';
CREATE INDEX outbox_in_order ON idem.outbox (destination, aggregatetype, aggregateid, seq)
  WHERE state = 'waiting' AND aggregateid <> '';
CREATE INDEX outbox_ended ON idem.outbox (state, ended_at, seq) WHERE state <> 'waiting';

-- Work in phases (protocol.md §16): one row from the reserve's commit to the completion's, with all that a completer
-- needs to continue if the client does not come back. Only the record decides who may continue.
CREATE TABLE idem.flows (
  id uuid PRIMARY KEY,                   -- the record's
  operation text COLLATE "C" NOT NULL,
  input bytea NOT NULL,                  -- the request (src/library/flow_input.hpp), the same for all attempts
  point text COLLATE "C" NOT NULL,       -- the last phase that committed; written with the record's own
  next text COLLATE "C" NOT NULL,        -- the phase behind it by its name then: only this one may have sent
                                         -- something; empty: not known
  point_at timestamptz NOT NULL,         -- the next phase sent nothing before it
  attempts integer NOT NULL,
  due_at timestamptz NOT NULL,           -- when a completer reads its record
  quiet_since timestamptz,               -- an earlier attempt may have sent the next phase's call; since then
                                         -- none can be in flight
  token uuid NOT NULL,                   -- of the attempt that has it; an older one can note nothing
  nothing_open boolean NOT NULL          -- it is known that no call is open: each is noted before it is made, or the
                                         -- attempt has ended, or its record is unknown and only evidence lets it
                                         -- run again
);
CREATE INDEX flows_due ON idem.flows (operation, due_at);

-- Roles that are restricted to a scope (functions/90_restrict.sql).
CREATE TABLE idem.restricted_roles (
  role regrole PRIMARY KEY,
  scope text COLLATE "C"                 -- NULL: the one that the session's setting idem.scope names
);

-- The applied files of tables/.
CREATE TABLE idem.schema_version (
  version integer PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The applied sets of functions; the last one is the current one.
CREATE TABLE idem.schema_functions (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  checksum text COLLATE "C" NOT NULL,    -- of all files of functions/
  program text COLLATE "C" NOT NULL,     -- the version of the program that applied them
  signatures text[] COLLATE "C" NOT NULL, -- its functions: the next set drops those that it lacks
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- ---- parameters and results of functions ----

-- The result of an owner's verb. `stale`: the attempt is not the record's current one; `settled`: this attempt has
-- ended before, and its first ending is kept.
CREATE TYPE idem.owner_reply AS (verdict idem.verdict, state idem.state, expires_at timestamptz);

-- The result of a reserve (§5). Which members mean something depends on the outcome.
CREATE TYPE idem.outcome AS (
  outcome text,                          -- execute, replay, in_progress, key_misuse, unknown, expired, pending,
                                         -- damaged: the stored answer is lost
  operation uuid,                        -- the record
  fence bigint,                          -- execute: the caller's; in_progress: of the running attempt
  attempt uuid,                          -- execute: the token that the caller sent
  recovery_point text,
  again boolean,                         -- execute: there was a record, and its work runs again
  state idem.state,
  is_other boolean,                      -- key_misuse: false where it may be the same request by other rules
  lease_remaining bigint,                -- ms
  locked_until timestamptz,
  since timestamptz,
  reconcile_in bigint,                   -- ms; NULL: nothing is planned
  completed_at timestamptz,
  expires_at timestamptz,
  expires_in bigint,                     -- ms
  response_status integer,
  response_head bytea,                   -- idem.headers() reads it
  response_body bytea,
  ended_lease boolean,                   -- this reserve ended an expired lease
  retry_in bigint,                       -- ms; of quota_exceeded
  is_stored boolean                      -- in_progress: its request is stored, and runs without the client
);

-- A reserve; its fields are those of the record that it makes.
CREATE TYPE idem.reservation AS (
  id uuid,
  scope text COLLATE "C",
  operation text COLLATE "C",
  generation bigint,
  fingerprint bytea,                     -- the one that is stored; the others of `offered` only match
  token uuid,
  owner text,
  lease bigint,
  lease_policy idem.lease_policy,
  dispatched boolean,
  retention bigint,
  tombstone bigint,
  provider text,
  sealed_key bytea
);

-- 0: no limit.
CREATE TYPE idem.quota AS (
  key_interval bigint,                   -- us between new keys
  at_once bigint,                        -- new keys that may come together
  keys bigint,
  bytes bigint
);

-- The first row of a result has all calls that ended in the usual way, in two arrays; each other row is one call.
CREATE TYPE idem.numbered_reply AS (
  usual integer[],                       -- numbers of calls in the batch, from 1, that completed
  until timestamptz[],                   -- when their answers expire
  number integer,
  held boolean,                          -- another transaction has the record: the store repeats the call
  state idem.state,
  verdict idem.verdict,
  expires_at timestamptz,
  is_contradicted boolean                -- completed, though an event reported it as refused
);

-- late: ms since it was due.
CREATE TYPE idem.lifecycle_step AS (operation uuid, before idem.state, after idem.state, late bigint);

CREATE TYPE idem.found AS (
  state idem.state, fence bigint, recovery_point text, locked_until timestamptz, created_at timestamptz,
  changed_at timestamptz, expires_at timestamptz, last_error_code text, upstream_reference text,
  response_status integer, response_headers jsonb, response_body bytea
);
