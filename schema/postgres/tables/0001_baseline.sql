-- The shared store's tables and types (protocol.md §2): one row for each record, answers beside them.
-- All moments are the database's own, cut to milliseconds (idem.now()); durations are milliseconds.
-- Whatever changes a record goes through the functions of schema/postgres/functions.

CREATE SCHEMA IF NOT EXISTS idem;

CREATE TYPE idem.state AS ENUM
  ('pending', 'in_progress', 'completed', 'failed_retryable', 'unknown', 'expired');
CREATE TYPE idem.release_basis AS ENUM ('proven', 'declared');
CREATE TYPE idem.lease_policy AS ENUM ('unknown', 'resume', 'rerun');
CREATE TYPE idem.verdict AS ENUM ('done', 'settled', 'stale');
CREATE TYPE idem.message_state AS ENUM ('waiting', 'delivered', 'dead', 'discarded');

-- Fences: store-wide and growing, so none is ever repeated, also after its record is gone.
CREATE SEQUENCE idem.fences;
CREATE SEQUENCE idem.answer_numbers CACHE 64;

-- fillfactor: a record is changed once, when it settles, and the new version, with its answer, shall find room
-- beside the old one. No index but the key's, and none may know what changes then: so no index is touched by it
-- (HOT), and what the old version took is free again at the next look at its page.
CREATE TABLE idem.slots (
  id uuid PRIMARY KEY,                   -- keyed digest of (scope, operation, key): the raw key is never stored
  scope text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,            -- of the identity it was made under: which secret made id and fingerprint
  fingerprint bytea NOT NULL,            -- version (4 bytes, big-endian), then the digest
  state idem.state NOT NULL,
  fence bigint NOT NULL,                 -- of the last attempt; 0: there was none yet
  token uuid NOT NULL,                   -- of the same; all zeros: none, or forgotten on purpose
  owner text COLLATE "C" NOT NULL,
  locked_until timestamptz NOT NULL,     -- the lease; pending: not to be claimed before
  dispatched boolean NOT NULL,           -- the first byte may have been sent
  lease_policy idem.lease_policy NOT NULL, -- what becomes of an expired lease; stored, so that all sweepers agree
  retention bigint NOT NULL,             -- ms from completion; stored for the same reason
  tombstone bigint NOT NULL,             -- ms after that
  recovery_point text COLLATE "C" NOT NULL DEFAULT '',
  request bytea,                         -- asynchronous: what the dispatcher will send
  response_head bytea,                   -- completed: a small answer's status and fields, framed (idem.headers())
  response_body bytea,                   -- of the same, byte for byte
  answer bigint,                         -- completed: the number of a larger one in idem.answers
  response_status smallint,              -- of either
  body_kept boolean,                     -- false: its body was too large, and the record says only that it ran
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
  charged bigint NOT NULL DEFAULT 0,     -- bytes that it is counted with in its scope's quota; 0: it is not
  contested boolean NOT NULL DEFAULT false, -- evidence said of this very attempt that it was done, while it ran or
                                         -- beside a stored 5xx (§19): it is not freed
  provider text COLLATE "C",             -- who is asked how it ended, a name of the gateways' settings: kept, because the
                                         -- route may say otherwise by then; none: nobody, or it was not said
  sealed_key bytea                       -- the client's key, where the provider knows it by nothing else; until it completes
) WITH (fillfactor = 35, autovacuum_vacuum_scale_factor = 0.05);

-- What sweeper and reaper have to look at, and when: one row for the records of a whole batch, committed with
-- them. It decides nothing: who looks reads the record, and what was settled or renewed meanwhile is left alone.
-- Each change of state that time can end adds the records to one of the two; nothing takes them out but a look.
CREATE TABLE idem.lease_looks (
  due_at timestamptz NOT NULL,           -- when the first of them may be due; the others are put off again
  ids uuid[] NOT NULL                    -- of records that ran or waited: at most 256
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX lease_looks_due ON idem.lease_looks (due_at);
CREATE TABLE idem.expiry_looks (
  due_at timestamptz NOT NULL,
  ids uuid[] NOT NULL                    -- of records that were settled, or that expired
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX expiry_looks_due ON idem.expiry_looks (due_at);
-- Digests are not to be compressed, and 256 of them fit into a page.
ALTER TABLE idem.lease_looks ALTER COLUMN ids SET STORAGE PLAIN;
ALTER TABLE idem.expiry_looks ALTER COLUMN ids SET STORAGE PLAIN;
-- They have no key, and under FOR ALL TABLES nothing could be deleted from them; the others are known by their key.
ALTER TABLE idem.lease_looks REPLICA IDENTITY FULL;
ALTER TABLE idem.expiry_looks REPLICA IDENTITY FULL;

-- The few records that stay as they are until something happens; changed with their record, under its lock.
CREATE TABLE idem.standing (
  id uuid PRIMARY KEY,
  state idem.state NOT NULL,             -- as the comment below says
  moment timestamptz NOT NULL            -- pending: not to be claimed before; the others: since
);
COMMENT ON TABLE idem.standing IS
  'Records that stay as they are until something happens: pending, unknown, failed_retryable (moment: since), and'
  ' in_progress past their lease where a reserve takes them up (moment: its end). A row that its record has outgrown'
  ' counts for nothing.';
CREATE INDEX standing_in_order ON idem.standing (state, moment, id);
CREATE INDEX standing_by_id ON idem.standing (state, id);

-- Answers that are too large to lie in their record, by the day on which they expire: what is over goes away with
-- its day's table, and nothing has to be cleaned up row by row. A day without a table of its own goes into the last
-- one.
CREATE TABLE idem.answers (
  expires_at timestamptz NOT NULL,
  number bigint NOT NULL,
  head bytea NOT NULL,                   -- status and fields, framed (idem.headers())
  body bytea NOT NULL,                   -- byte for byte
  PRIMARY KEY (expires_at, number)
) PARTITION BY RANGE (expires_at);
CREATE TABLE idem.answers_without_day PARTITION OF idem.answers DEFAULT;

-- Every decision by evidence, also the refused ones; outlives its record.
CREATE TABLE idem.evidence (
  line bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL,
  fence bigint NOT NULL,                 -- the attempt it speaks of
  source text COLLATE "C" NOT NULL,
  evidence text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  before_state idem.state,               -- none: there was no record
  after_state idem.state,
  applied boolean NOT NULL,              -- false: kept, but it changed nothing
  observed_at timestamptz NOT NULL,      -- by its source
  recorded_at timestamptz NOT NULL
);
CREATE INDEX evidence_by_id ON idem.evidence (id, line);

-- How records get their names (protocol.md §2); one row. A start or a reload with another naming is
-- refused while there are records that it would hide.
CREATE TABLE idem.identity (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  store_id uuid NOT NULL,                -- tells this store from every other, for what is cached elsewhere
  generation bigint NOT NULL CHECK (generation > 0),
  secret bytea NOT NULL,                 -- the store's own, made at its first start, never changed
  key_scope text COLLATE "C" NOT NULL,
  scope_source text COLLATE "C" NOT NULL,
  key_fields text COLLATE "C" NOT NULL DEFAULT '' -- whose value is taken for a key; separated by spaces
);

-- The route table that was adopted last, in its order.
CREATE TABLE idem.route_names (
  position integer PRIMARY KEY,
  methods text COLLATE "C" NOT NULL,     -- separated by spaces; none: all
  pattern text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,        -- empty: each method and path is its own operation
  formerly text COLLATE "C" NOT NULL     -- separated by line feeds, which no name holds
);

-- Which secret ids and fingerprints are made under: from each generation on, until the next row's.
CREATE TABLE idem.digest_secrets (
  generation bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL           -- a keyed digest of the secret, never the secret
);

-- A count is one row for each scope and session, so that no two transactions ever wait for each other's: the scope has
-- their sum. What others count and have not committed is not seen, so where the number or the rate of keys is limited,
-- who makes new ones holds a lock of their scope until its transaction ends. For the bytes alone nobody waits: they may
-- be passed by what is under way at one moment.
CREATE TABLE idem.usage (
  scope text COLLATE "C" NOT NULL,
  lane integer NOT NULL,                 -- the session that counted it; 0: sessions that are over
  active bigint NOT NULL,                -- records that have not expired; of one lane it may be below zero
  bytes bigint NOT NULL,
  PRIMARY KEY (scope, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE idem.rates (
  scope text COLLATE "C" PRIMARY KEY,
  next_key bigint NOT NULL               -- us since the epoch: when the next key is due at the rate's own pace
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Messages that a service sends because of what it did (protocol.md §18). The first columns have the names that
-- Debezium's outbox router looks for.
CREATE TABLE idem.outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL UNIQUE,               -- what the receiver tells a repeated delivery by
  aggregatetype text COLLATE "C" NOT NULL,
  aggregateid text COLLATE "C" NOT NULL, -- with its type: messages of one leave in their order; empty: in any
  type text COLLATE "C" NOT NULL,
  payload text COLLATE "C" NOT NULL,
  content_type text COLLATE "C" NOT NULL,
  destination text COLLATE "C" NOT NULL, -- its name in the relays' configuration
  operation uuid NOT NULL,               -- the record whose work sends it
  state idem.message_state NOT NULL DEFAULT 'waiting',
  created_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,           -- waiting: not before; in flight: when the claim ends
  attempts integer NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,       -- of the last claim: an older one notes nothing any more
  claimed boolean NOT NULL DEFAULT false, -- until due_at a relay has it
  in_flight boolean NOT NULL DEFAULT false, -- since the last note it may have been sent
  ambiguous boolean NOT NULL DEFAULT false, -- an attempt may have arrived; nobody knows
  quiet_since timestamptz,               -- ambiguous: since when none of them can be under way any more
  first_at timestamptz,                  -- ambiguous: none of them arrived before this
  repeat_until timestamptz,              -- until when the destination takes a repeat for what it is
  reference text COLLATE "C" NOT NULL DEFAULT '', -- what the receiver calls it; noted with the delivery, never after it
  last_error text COLLATE "C" NOT NULL DEFAULT '',
  history jsonb NOT NULL DEFAULT '[]',   -- of each attempt and decision: at, how, why
  ended_at timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX outbox_due ON idem.outbox (destination, due_at, seq) WHERE state = 'waiting';
CREATE INDEX outbox_in_order ON idem.outbox (destination, aggregatetype, aggregateid, seq)
  WHERE state = 'waiting' AND aggregateid <> '';
CREATE INDEX outbox_ended ON idem.outbox (state, ended_at, seq) WHERE state <> 'waiting';

-- Work that is split into phases (protocol.md §16): one row from the reserve's commit to the completion's, with what
-- a completer needs to go on with it when its client never comes back. Whether somebody may is said by the record
-- alone; this is only what there is to do.
CREATE TABLE idem.flows (
  id uuid PRIMARY KEY,                   -- the record's
  operation text COLLATE "C" NOT NULL,
  input bytea NOT NULL,                  -- what was asked (src/library/flow_input.hpp): all attempts work on this
  point text COLLATE "C" NOT NULL,       -- the last phase that committed: written with the record's own
  next text COLLATE "C" NOT NULL,        -- the phase behind it, as it was named then: what may have been sent, was sent
                                         -- by this one; empty: not known
  point_at timestamptz NOT NULL,         -- nothing of the next phase was sent before this
  attempts integer NOT NULL,
  due_at timestamptz NOT NULL,           -- when a completer looks at its record
  quiet_since timestamptz,               -- an earlier attempt may have sent what the next phase sends; none of them
                                         -- can be sending since then
  token uuid NOT NULL,                   -- of the attempt that has it; an older one notes nothing any more
  nothing_open boolean NOT NULL          -- known: no call may have been made. It is noted before each, or the attempt
                                         -- has ended, or its record is unknown, and who executes it again has had
                                         -- evidence
);
CREATE INDEX flows_due ON idem.flows (operation, due_at);

-- Roles that are walled in (functions/90_restrict.sql).
CREATE TABLE idem.restricted_roles (
  role regrole PRIMARY KEY,
  scope text COLLATE "C"                 -- none: the one that the session's setting idem.scope names
);

-- Which files of tables/ were applied.
CREATE TABLE idem.schema_version (
  version integer PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Which sets of functions were; the last one is what there is now.
CREATE TABLE idem.schema_functions (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  checksum text COLLATE "C" NOT NULL,    -- of all files of functions/
  program text COLLATE "C" NOT NULL,     -- the version of the program that brought them
  signatures text[] COLLATE "C" NOT NULL, -- those that it made: what the next set does not have is dropped then
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- ---- what functions take and answer ----

-- How an owner's verb ended: `stale`, another attempt or nobody has the record; `settled`, this one had
-- ended before and the first ending stands.
CREATE TYPE idem.owner_reply AS (verdict idem.verdict, state idem.state, expires_at timestamptz);

-- What a reserve is answered with (§5). Which members mean something depends on the outcome.
CREATE TYPE idem.outcome AS (
  outcome text,                          -- execute, replay, in_progress, key_misuse, unknown, expired, pending,
                                         -- damaged: there was an answer, and it is not there
  operation uuid,                        -- the record
  fence bigint,                          -- execute: yours; in_progress: of the attempt that runs
  attempt uuid,                          -- execute: the token, as it was given
  recovery_point text,
  again boolean,                         -- execute: there was a record; its work is run once more
  state idem.state,
  is_other boolean,                      -- key_misuse: false where it may be the same request under other rules
  lease_remaining bigint,                -- ms
  locked_until timestamptz,
  since timestamptz,
  reconcile_in bigint,                   -- ms; none: nothing is scheduled
  completed_at timestamptz,
  expires_at timestamptz,
  expires_in bigint,                     -- ms
  response_status integer,
  response_head bytea,                   -- idem.headers() reads it
  response_body bytea,
  ended_lease boolean,                   -- this reserve met an expired lease and ended it
  retry_in bigint,                       -- ms; of quota_exceeded
  is_stored boolean                      -- in_progress: its request is, and it goes on by itself
);

-- What is asked; its fields are those of the record that it makes.
CREATE TYPE idem.reservation AS (
  id uuid,
  scope text COLLATE "C",
  operation text COLLATE "C",
  generation bigint,
  fingerprint bytea,                     -- what is stored; the others of `offered` only match
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

-- A zero is no limit.
CREATE TYPE idem.quota AS (
  key_interval bigint,                   -- us for each new key
  at_once bigint,                        -- of them
  keys bigint,
  bytes bigint
);

-- The first row of an answer tells all calls that took the usual way, in two arrays; each other row one call.
CREATE TYPE idem.numbered_reply AS (
  usual integer[],                       -- numbers of calls in the batch, from 1: completed, done
  until timestamptz[],                   -- when what they stored expires
  number integer,
  held boolean,                          -- another transaction has the record: ask again, apart from the others
  state idem.state,
  verdict idem.verdict,
  expires_at timestamptz,
  is_contradicted boolean                -- completed, though an event said otherwise of the attempt
);

-- late: for how many milliseconds it had been due.
CREATE TYPE idem.lifecycle_step AS (operation uuid, before idem.state, after idem.state, late bigint);

CREATE TYPE idem.found AS (
  state idem.state, fence bigint, recovery_point text, locked_until timestamptz, created_at timestamptz,
  changed_at timestamptz, expires_at timestamptz, last_error_code text, upstream_reference text,
  response_status integer, response_headers jsonb, response_body bytea
);
