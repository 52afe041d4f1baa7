-- The shared store's schema, version 1 (protocol.md §2): one row for each record, answers beside them.
-- All moments are the database's own, cut to milliseconds (idem.now()); durations are milliseconds.
-- Whatever changes a record goes through the functions of the files behind this one.

CREATE SCHEMA IF NOT EXISTS idem;

CREATE TYPE idem.state AS ENUM
  ('pending', 'in_progress', 'completed', 'failed_retryable', 'unknown', 'expired');
CREATE TYPE idem.release_basis AS ENUM ('proven', 'declared');
CREATE TYPE idem.lease_policy AS ENUM ('unknown', 'resume', 'rerun');

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
  owner text NOT NULL,
  locked_until timestamptz NOT NULL,     -- the lease; pending: not to be claimed before
  dispatched boolean NOT NULL,           -- the first byte may have been sent
  lease_policy idem.lease_policy NOT NULL, -- what becomes of an expired lease; stored, so that all sweepers agree
  retention bigint NOT NULL,             -- ms from completion; stored for the same reason
  tombstone bigint NOT NULL,             -- ms after that
  recovery_point text NOT NULL DEFAULT '',
  request bytea,                         -- asynchronous: what the dispatcher will send
  response_head bytea,                   -- completed: a small answer's status and fields, framed (idem.headers())
  response_body bytea,                   -- of the same, byte for byte
  answer bigint,                         -- completed: the number of a larger one in idem.answers
  response_status smallint,              -- of either
  body_kept boolean,                     -- false: its body was too large, and the record says only that it ran
  release_basis idem.release_basis,
  last_error_code text NOT NULL DEFAULT '',
  reconcile_after timestamptz,
  reconcile_attempts integer NOT NULL DEFAULT 0,
  upstream_reference text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,       -- last change of state: the "since" of an unknown
  completed_at timestamptz,
  expires_at timestamptz,
  tombstone_until timestamptz
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

-- The few records that stay as they are until something happens; changed with their record, under its lock.
CREATE TABLE idem.standing (
  id uuid PRIMARY KEY,
  state idem.state NOT NULL,             -- pending or unknown
  moment timestamptz NOT NULL            -- pending: not to be claimed before; unknown: since
);
CREATE INDEX standing_in_order ON idem.standing (state, moment, id);

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
  source text NOT NULL,
  evidence text NOT NULL,
  reason text NOT NULL,
  before_state idem.state,               -- none: there was no record
  after_state idem.state,
  applied boolean NOT NULL,              -- false: kept, but it changed nothing
  observed_at timestamptz NOT NULL,      -- by its source
  recorded_at timestamptz NOT NULL
);
CREATE INDEX evidence_by_id ON idem.evidence (id, line);

CREATE FUNCTION idem.evidence_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'idem.evidence is append-only' USING ERRCODE = 'IDM09';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON idem.evidence
  EXECUTE FUNCTION idem.evidence_is_append_only();

-- How records get their names (protocol.md §2); one row. A start or a reload with another naming is
-- refused while there are records that it would hide.
CREATE TABLE idem.identity (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  store_id uuid NOT NULL,                -- tells this store from every other, for what is cached elsewhere
  generation bigint NOT NULL CHECK (generation > 0),
  secret bytea NOT NULL,                 -- the store's own, made at its first start, never changed
  key_scope text NOT NULL,
  scope_source text NOT NULL,
  key_fields text NOT NULL DEFAULT ''    -- whose value is taken for a key; separated by spaces
);

-- The route table that was adopted last, in its order.
CREATE TABLE idem.route_names (
  position integer PRIMARY KEY,
  methods text NOT NULL,                 -- separated by spaces; none: all
  pattern text NOT NULL,
  name text NOT NULL,                    -- empty: each method and path is its own operation
  formerly text NOT NULL                 -- separated by line feeds, which no name holds
);

-- Which secret ids and fingerprints are made under: from each generation on, until the next row's.
CREATE TABLE idem.digest_secrets (
  generation bigint PRIMARY KEY,
  id text NOT NULL                       -- a keyed digest of the secret, never the secret
);

CREATE TABLE idem.schema_version (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
