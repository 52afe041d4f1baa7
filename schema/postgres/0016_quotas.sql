-- What a scope may have (src/core/quota.hpp): new keys in a time, records that have not expired, and bytes. Decided in
-- the reserve, where it would make a record, so that no retry is ever refused for it; and counted in the transaction of
-- each record that was made by a reserve with a quota.
--
-- A count is one row for each scope and session, so that no two transactions ever wait for each other's: the scope has
-- their sum. What others count and have not committed is not seen, so where the number or the rate of keys is limited,
-- who makes new ones holds a lock of their scope until its transaction ends. For the bytes alone nobody waits: they may
-- be passed by what is under way at one moment.

ALTER TABLE idem.slots ADD COLUMN charged bigint NOT NULL DEFAULT 0; -- bytes that it is counted with; 0: it is not
-- Evidence said of this very attempt that it was done, while it ran or beside a stored 5xx (§19): it is not freed.
ALTER TABLE idem.slots ADD COLUMN contested boolean NOT NULL DEFAULT false;

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

-- A zero is no limit.
CREATE TYPE idem.quota AS (
  key_interval bigint,                   -- us for each new key
  at_once bigint,                        -- of them
  keys bigint,
  bytes bigint
);

ALTER TYPE idem.outcome ADD ATTRIBUTE retry_in bigint;  -- ms; of quota_exceeded
ALTER TYPE idem.outcome ADD ATTRIBUTE is_stored boolean; -- in_progress: its request is, and it goes on by itself

-- As in include/idem/limits.hpp.
CREATE FUNCTION idem.record_charge() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN 1024;
CREATE FUNCTION idem.tombstone_charge() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN 256;
CREATE FUNCTION idem.answer_charge(head bytea, body bytea) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE WHEN idem.is_small(head, body) THEN 0 ELSE octet_length(head) + octet_length(body) END;
CREATE FUNCTION idem.us(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN idem.ms_until(at, idem.epoch()) * 1000;

CREATE FUNCTION idem.note_usage(whose text, active bigint, bytes bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF active = 0 AND bytes = 0 THEN RETURN; END IF;
  INSERT INTO idem.usage AS u VALUES (whose, pg_backend_pid(), note_usage.active, note_usage.bytes)
  ON CONFLICT ON CONSTRAINT usage_pkey
    DO UPDATE SET active = u.active + excluded.active, bytes = u.bytes + excluded.bytes;
END $$;

CREATE FUNCTION idem.hold_scope(whose text, q idem.quota) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF q.keys > 0 OR q.key_interval > 0 THEN PERFORM pg_advisory_xact_lock(1229210958, hashtext(whose)); END IF;
END $$;

-- How many new keys may begin in this scope now. `freed_...`: what lies there, and gives way.
CREATE FUNCTION idem.room(whose text, q idem.quota, at timestamptz, freed_active bigint DEFAULT 0,
                          freed_bytes bigint DEFAULT 0) RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
  next bigint;
  room bigint := 1000000;
BEGIN
  IF q.keys > 0 OR q.bytes > 0 THEN
    SELECT coalesce(sum(u.active), 0) - freed_active, coalesce(sum(u.bytes), 0) - freed_bytes INTO active, bytes
      FROM idem.usage u WHERE u.scope = whose;
    IF q.keys > 0 THEN room := least(room, q.keys - active); END IF;
    IF q.bytes > 0 THEN room := least(room, (q.bytes - bytes) / idem.record_charge()); END IF;
  END IF;
  IF q.key_interval > 0 AND room > 0 THEN
    SELECT r.next_key INTO next FROM idem.rates r WHERE r.scope = whose;
    room := least(room, q.at_once
      - div(greatest(coalesce(next, 0) - idem.us(at), 0)::numeric + q.key_interval - 1, q.key_interval)::bigint);
  END IF;
  RETURN greatest(room, 0);
END $$;

-- Of a scope that has no room: when to ask again, ms. Where keys have to end first that is when one of them does on
-- average, as each lives for `retention`.
CREATE FUNCTION idem.retry_in(whose text, q idem.quota, retention bigint, at timestamptz) RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  active bigint;
  bytes bigint;
  next bigint;
BEGIN
  SELECT coalesce(sum(u.active), 0), coalesce(sum(u.bytes), 0) INTO active, bytes FROM idem.usage u WHERE u.scope = whose;
  IF q.keys > 0 AND active >= q.keys OR q.bytes > 0 AND bytes + idem.record_charge() > q.bytes THEN
    RETURN least(greatest(retention / greatest(active, 1), 1000), 3600000);
  END IF;
  SELECT r.next_key INTO next FROM idem.rates r WHERE r.scope = whose;
  next := greatest(coalesce(next, 0), idem.us(at));
  RETURN greatest((next - q.key_interval * (q.at_once - 1) - idem.us(at) + 999) / 1000, 1);
END $$;

-- So many new keys have begun.
CREATE FUNCTION idem.pass_keys(whose text, q idem.quota, number bigint, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF q.key_interval = 0 THEN RETURN; END IF;
  INSERT INTO idem.rates AS r VALUES (whose, idem.us(at) + number * q.key_interval)
  ON CONFLICT ON CONSTRAINT rates_pkey
    DO UPDATE SET next_key = greatest(r.next_key, idem.us(at)) + number * q.key_interval;
END $$;

-- One new key: none where it may begin, else when to ask again.
CREATE FUNCTION idem.refuse_key(whose text, q idem.quota, retention bigint, at timestamptz, freed_active bigint DEFAULT 0,
                                freed_bytes bigint DEFAULT 0) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idem.hold_scope(whose, q);
  IF idem.room(whose, q, at, freed_active, freed_bytes) = 0 THEN RETURN idem.retry_in(whose, q, retention, at); END IF;
  PERFORM idem.pass_keys(whose, q, 1, at);
  RETURN NULL;
END $$;

CREATE FUNCTION idem.exceeds(r idem.reservation, retry_in bigint) RETURNS idem.outcome LANGUAGE plpgsql AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'quota_exceeded';
  o.operation := r.id;
  o.retry_in := exceeds.retry_in;
  o.ended_lease := false;
  RETURN o;
END $$;

-- Sums up what sessions that are over have counted. Waits for nobody.
CREATE FUNCTION idem.fold_usage(most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  alive integer[] := (SELECT array_agg(a.pid) FROM pg_stat_activity a);
  folded integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(1229210957, 3) THEN RETURN 0; END IF;
  WITH next AS MATERIALIZED (
    SELECT u.ctid AS place FROM idem.usage u WHERE u.lane <> 0 AND u.lane <> ALL (alive) LIMIT most
      FOR UPDATE SKIP LOCKED
  ), taken AS (
    DELETE FROM idem.usage u USING next n WHERE u.ctid = n.place RETURNING u.scope, u.active, u.bytes
  ), kept AS (
    INSERT INTO idem.usage AS u SELECT t.scope, 0, sum(t.active), sum(t.bytes) FROM taken t GROUP BY t.scope
    ON CONFLICT ON CONSTRAINT usage_pkey
      DO UPDATE SET active = u.active + excluded.active, bytes = u.bytes + excluded.bytes
  )
  SELECT count(*) INTO folded FROM taken;
  DELETE FROM idem.usage u WHERE u.lane = 0 AND u.active = 0 AND u.bytes = 0;
  -- A moment that is over is as good as none.
  DELETE FROM idem.rates r USING (
    SELECT t.ctid AS place FROM idem.rates t WHERE t.next_key < idem.us(idem.now()) LIMIT most FOR UPDATE SKIP LOCKED
  ) n WHERE r.ctid = n.place;
  RETURN folded;
END $$;

-- ---- what there was, with what it counts ----

CREATE OR REPLACE FUNCTION idem.finish(INOUT s idem.slots, head bytea, body bytea, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.request := NULL;
  s.state := 'completed';
  s.locked_until := idem.epoch();
  s.changed_at := at;
  s.completed_at := at;
  s.expires_at := at + idem.ms(s.retention);
  s.tombstone_until := s.expires_at + idem.ms(s.tombstone);
  s.response_status := idem.status_of(head);
  s.body_kept := idem.has_body(head);
  IF idem.is_small(head, body) THEN
    s.response_head := head;
    s.response_body := body;
  ELSE
    s.answer := nextval('idem.answer_numbers');
    INSERT INTO idem.answers VALUES (s.expires_at, s.answer, head, body);
  END IF;
  IF s.charged > 0 THEN s.charged := idem.record_charge() + idem.answer_charge(head, body); END IF;
  PERFORM idem.look_at_expiry(s.id, s.expires_at);
END $$;

CREATE FUNCTION idem.active_of(s idem.slots) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE WHEN s.charged > 0 AND s.state <> 'expired' THEN 1 ELSE 0 END;

CREATE OR REPLACE FUNCTION idem.put(s idem.slots) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before idem.slots;
BEGIN
  SELECT t.state, t.charged INTO before.state, before.charged FROM idem.slots t WHERE t.id = s.id;
  UPDATE idem.slots t SET
    scope = s.scope, operation = s.operation, generation = s.generation, fingerprint = s.fingerprint,
    state = s.state, fence = s.fence, token = s.token, owner = s.owner, locked_until = s.locked_until,
    dispatched = s.dispatched, lease_policy = s.lease_policy, retention = s.retention, tombstone = s.tombstone,
    recovery_point = s.recovery_point, request = s.request, response_head = s.response_head,
    response_body = s.response_body, answer = s.answer, response_status = s.response_status,
    body_kept = s.body_kept, release_basis = s.release_basis, last_error_code = s.last_error_code,
    reconcile_after = s.reconcile_after, reconcile_attempts = s.reconcile_attempts,
    upstream_reference = s.upstream_reference, created_at = s.created_at, changed_at = s.changed_at,
    completed_at = s.completed_at, expires_at = s.expires_at, tombstone_until = s.tombstone_until, charged = s.charged, contested = s.contested
  WHERE t.id = s.id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the record of % is not where it was', idem.handle(s.id) USING ERRCODE = 'IDM04';
  END IF;
  PERFORM idem.note_usage(s.scope, idem.active_of(s) - idem.active_of(before), s.charged - before.charged);
  PERFORM idem.keep_standing(s);
END $$;

CREATE OR REPLACE FUNCTION idem.drop_answer(INOUT s idem.slots) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
  s.response_head := NULL;
  s.response_body := NULL;
  s.answer := NULL;
  s.response_status := NULL;
  s.body_kept := NULL;
  IF s.charged > 0 THEN s.charged := idem.record_charge(); END IF;
END $$;

CREATE OR REPLACE FUNCTION idem.answers_as(s idem.slots, ended_lease boolean, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.operation := s.id;
  o.state := idem.state_at(s, at);
  o.ended_lease := ended_lease;
  o.fence := s.fence;
  CASE o.state
    WHEN 'in_progress' THEN
      o.outcome := 'in_progress';
      o.is_stored := s.request IS NOT NULL;
      o.locked_until := s.locked_until;
      o.lease_remaining := greatest(1, idem.ms_until(s.locked_until, at));
    WHEN 'unknown' THEN
      o.outcome := 'unknown';
      o.since := s.changed_at;
      o.reconcile_in := CASE WHEN s.reconcile_after IS NOT NULL
                             THEN greatest(0, idem.ms_until(s.reconcile_after, at)) END;
    WHEN 'completed' THEN
      o.outcome := 'replay';
      o.completed_at := s.completed_at;
      o.expires_at := s.expires_at;
      o.expires_in := idem.ms_until(s.expires_at, at);
      o.response_status := s.response_status;
      o.response_head := s.response_head;
      o.response_body := s.response_body;
      IF s.response_head IS NULL THEN
        SELECT a.head, a.body INTO o.response_head, o.response_body
          FROM idem.answers a WHERE a.expires_at = s.expires_at AND a.number = s.answer;
        -- Released meanwhile, or its day is over: to be read again. Otherwise lost.
        IF NOT FOUND THEN o.outcome := 'damaged'; END IF;
      END IF;
    WHEN 'expired' THEN
      o.outcome := 'expired';
      o.completed_at := coalesce(s.completed_at, s.changed_at);
    ELSE
      o.outcome := o.state::text;          -- pending
  END CASE;
  RETURN o;
END $$;

CREATE OR REPLACE FUNCTION idem.begin_attempt(INOUT s idem.slots, token uuid, owner text, lease bigint, dispatched boolean,
                                   at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s := idem.clear_outcome(s);
  s.state := 'in_progress';
  s.fence := nextval('idem.fences');
  s.token := begin_attempt.token;
  s.owner := begin_attempt.owner;
  s.locked_until := at + idem.ms(lease);
  s.dispatched := begin_attempt.dispatched;
  s.changed_at := at;
  -- That is what an earlier attempt's work is called: whoever asked by it about this one would hear of that one.
  s.upstream_reference := '';
  s.contested := false;
  IF s.request IS NULL THEN s.expires_at := NULL; END IF;
  PERFORM idem.look_at_lease(s.id, s.locked_until);
END $$;

CREATE OR REPLACE FUNCTION idem.fresh(r idem.reservation, at timestamptz) RETURNS idem.slots LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
BEGIN
  s.id := r.id;
  s.scope := r.scope;
  s.operation := r.operation;
  s.generation := r.generation;
  s.fingerprint := r.fingerprint;
  s.state := 'in_progress';
  s.fence := 0;
  s.token := idem.nobody();
  s.owner := '';
  s.locked_until := idem.epoch();
  s.dispatched := false;
  s.lease_policy := r.lease_policy;
  s.retention := r.retention;
  s.tombstone := r.tombstone;
  s.recovery_point := '';
  s.last_error_code := '';
  s.reconcile_attempts := 0;
  s.charged := 0;
  s.contested := false;
  s.upstream_reference := '';
  s.created_at := at;
  s.changed_at := at;
  RETURN s;
END $$;

CREATE OR REPLACE FUNCTION idem.insert_new(s idem.slots) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, recovery_point, request, created_at, changed_at, expires_at, charged)
  VALUES
    (s.id, s.scope, s.operation, s.generation, s.fingerprint, s.state, s.fence, s.token, s.owner, s.locked_until,
     s.dispatched, s.lease_policy, s.retention, s.tombstone, s.recovery_point, s.request, s.created_at,
     s.changed_at, s.expires_at, s.charged)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM idem.note_usage(s.scope, idem.active_of(s), s.charged);
  PERFORM idem.keep_standing(s);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION idem.accepted(INOUT s idem.slots, request bytea, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s.state := 'pending';
  s.request := accepted.request;
  IF s.charged > 0 THEN s.charged := s.charged + octet_length(request); END IF;
  s.release_basis := NULL;
  s.last_error_code := '';
  s.dispatched := false;
  s.changed_at := at;
  s.locked_until := at;
  s.expires_at := at + idem.ms(s.retention);
  PERFORM idem.look_at_lease(s.id, s.expires_at);
END $$;

DROP FUNCTION idem.reserve_step(idem.slots, idem.reservation, bytea, timestamptz);
CREATE FUNCTION idem.reserve_step(s idem.slots, r idem.reservation, request bytea, at timestamptz, q idem.quota)
RETURNS idem.outcome LANGUAGE plpgsql AS $$
DECLARE
  before idem.slots := s;
  ended boolean;
  wait bigint;
  o idem.outcome;
BEGIN
  IF NOT idem.is_live(s, at) THEN
    IF q IS NOT NULL THEN
      wait := idem.refuse_key(r.scope, q, r.retention, at, idem.active_of(s), s.charged);
      IF wait IS NOT NULL THEN RETURN idem.exceeds(r, wait); END IF;
    END IF;
    s := idem.fresh(r, at);
    IF q IS NOT NULL THEN s.charged := idem.record_charge(); END IF;
    ended := false;
  ELSE
    s := idem.swept(s, at);
    ended := before.state = 'in_progress';
    IF s.state NOT IN ('in_progress', 'failed_retryable') THEN
      PERFORM idem.put(s);
      IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
      RETURN idem.answers_as(s, ended, at);
    END IF;
    IF request IS NOT NULL AND s.state = 'in_progress' AND (s.request IS NOT NULL OR s.lease_policy <> 'rerun') THEN
      -- A resumable attempt whose owner is gone. Only a reserve takes it up (§3); what may be run again is run as the
      -- stored request.
      o := idem.answers_as(s, false, at);
      IF s.request IS NOT NULL THEN o.outcome := 'pending'; END IF;
      RETURN o;
    END IF;
    s.lease_policy := r.lease_policy;
    s.retention := r.retention;
    s.tombstone := r.tombstone;
  END IF;
  IF request IS NOT NULL THEN
    s := idem.accepted(s, request, at);
    o := idem.answers_as(s, ended, at);
  ELSE
    s := idem.begin_attempt(s, r.token, r.owner, r.lease, r.dispatched, at);
    -- Fresh where what lay there counted as no record.
    o := idem.executes(s, idem.is_live(before, at), ended);
  END IF;
  PERFORM idem.put(s);
  IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
  RETURN o;
END $$;

DROP FUNCTION idem.reserve_one(idem.reservation, bytea[], uuid[], bytea[], bytea, boolean);
CREATE FUNCTION idem.reserve_one(r idem.reservation, offered bytea[], also uuid[], also_offered bytea[],
                                 request bytea, patient boolean, q idem.quota DEFAULT NULL) RETURNS idem.outcome
LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  other idem.slots;
  compared bytea[];
  under uuid;
  at timestamptz;
  is_mine boolean;
  has_locked boolean := coalesce(cardinality(also), 0) = 0;
  name uuid;
  wait bigint;
  o idem.outcome;
BEGIN
  -- A row that vanishes between two looks is met again, a few times (§5).
  FOR round IN 1..6 LOOP
    at := idem.now();
    under := r.id;
    SELECT * INTO s FROM idem.slots t WHERE t.id = r.id;
    compared := offered;
    is_mine := idem.is_live(s, at) AND idem.matches(offered, s.fingerprint);
    -- Of several the one of the same request counts, then the one that comes first.
    IF NOT is_mine THEN
      FOR n IN 1..coalesce(cardinality(also), 0) LOOP
        SELECT * INTO other FROM idem.slots t WHERE t.id = also[n];
        CONTINUE WHEN NOT idem.is_live(other, at);
        IF also_offered[n] = '' THEN compared := offered; ELSE compared := idem.fingerprints(also_offered[n]); END IF;
        is_mine := idem.matches(compared, other.fingerprint);
        IF is_mine OR NOT idem.is_live(s, at) THEN
          s := other;
          under := s.id;
        END IF;
        EXIT WHEN is_mine;
      END LOOP;
    END IF;
    IF NOT is_mine THEN
      -- The fingerprints that go with the name that was found.
      compared := offered;
      FOR n IN 1..coalesce(cardinality(also), 0) LOOP
        IF also[n] = under AND under <> r.id AND also_offered[n] <> '' THEN
          compared := idem.fingerprints(also_offered[n]);
          EXIT;
        END IF;
      END LOOP;
    END IF;
    IF idem.is_answered(s, compared, at) THEN
      o := idem.read_answer(s, r, compared, request IS NOT NULL, at);
      CONTINUE WHEN o.outcome = 'damaged' AND round < 3;
      RETURN o;
    END IF;

    -- What lies under one name may be taken up, or end, while another one is looked at; and one that is only
    -- being made is not to be seen. So whoever asks for a record of several names has all of them for itself, and
    -- looks again.
    IF NOT has_locked THEN
      FOR name IN SELECT n FROM unnest(also || r.id) n ORDER BY n LOOP
        CONTINUE WHEN pg_try_advisory_xact_lock(idem.lock_of(name));
        IF NOT patient THEN RETURN idem.is_held(s, r, at); END IF;
        BEGIN
          PERFORM pg_advisory_xact_lock(idem.lock_of(name));
        EXCEPTION WHEN lock_not_available THEN
          RETURN idem.is_held(s, r, idem.now());
        END;
      END LOOP;
      has_locked := true;
      CONTINUE;
    END IF;

    IF s.id IS NULL THEN
      IF NOT pg_try_advisory_xact_lock(idem.lock_of(r.id)) THEN
        IF NOT patient THEN RETURN idem.is_held(s, r, at); END IF;
        BEGIN
          PERFORM pg_advisory_xact_lock(idem.lock_of(r.id));
        EXCEPTION WHEN lock_not_available THEN
          RETURN idem.is_held(s, r, idem.now());
        END;
        CONTINUE;                        -- It is made by now, or was given up.
      END IF;
      IF q IS NOT NULL THEN
        -- Made between the look and the lock, it is a retry.
        CONTINUE WHEN EXISTS (SELECT FROM idem.slots t WHERE t.id = r.id);
        wait := idem.refuse_key(r.scope, q, r.retention, at);
        IF wait IS NOT NULL THEN RETURN idem.exceeds(r, wait); END IF;
      END IF;
      s := idem.fresh(r, at);
      IF q IS NOT NULL THEN s.charged := idem.record_charge(); END IF;
      IF request IS NULL THEN
        s := idem.begin_attempt(s, r.token, r.owner, r.lease, r.dispatched, at);
      ELSE
        s := idem.accepted(s, request, at);
      END IF;
      CONTINUE WHEN NOT idem.insert_new(s);
      IF request IS NULL THEN RETURN idem.executes(s, false, false); END IF;
      RETURN idem.answers_as(s, false, at);
    END IF;

    IF patient THEN
      BEGIN
        SELECT * INTO other FROM idem.slots t WHERE t.id = under FOR UPDATE;
      EXCEPTION WHEN lock_not_available THEN
        RETURN idem.is_held(s, r, idem.now());
      END;
    ELSE
      SELECT * INTO other FROM idem.slots t WHERE t.id = under FOR UPDATE SKIP LOCKED;
      IF NOT FOUND THEN
        CONTINUE WHEN NOT EXISTS (SELECT FROM idem.slots t WHERE t.id = under);
        RETURN idem.is_held(s, r, at);
      END IF;
    END IF;
    CONTINUE WHEN other.id IS NULL;
    at := idem.now();
    -- What lies under another name is over by now: the key is to be looked for anew.
    CONTINUE WHEN under <> r.id AND NOT idem.is_live(other, at);
    IF idem.is_answered(other, compared, at) THEN RETURN idem.read_answer(other, r, compared, request IS NOT NULL, at); END IF;
    RETURN idem.reserve_step(other, r, request, at, q);
  END LOOP;
  RAISE EXCEPTION 'the record of % comes and goes', idem.handle(r.id) USING ERRCODE = 'IDM04';
END $$;

DROP FUNCTION idem.reserve_alone(bigint, uuid, text, text, bytea, uuid, text, bigint, idem.lease_policy, boolean,
                                 bigint, bigint, uuid[], bytea[], bytea);
CREATE FUNCTION idem.reserve_alone(
  asked_generation bigint, id uuid, scope text, operation text, offered bytea, token uuid, owner text, lease bigint,
  policy idem.lease_policy, dispatched boolean, retention bigint, tombstone bigint, also uuid[],
  also_offered bytea[], request bytea, key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL,
  quota_keys bigint DEFAULT NULL, quota_bytes bigint DEFAULT NULL
) RETURNS idem.outcome LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.in_generation(asked_generation);
  RETURN idem.reserve_one(
    ROW(id, scope, operation, asked_generation, substr(offered, 1, 36), token, owner, lease, policy, dispatched,
        retention, tombstone)::idem.reservation,
    idem.fingerprints(offered), also, also_offered, request, false,
    CASE WHEN key_interval IS NOT NULL THEN ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota END);
END $$;

CREATE OR REPLACE FUNCTION idem.owners_many(
  verbs text[], ids uuid[], fences bigint[], tokens uuid[], leases bigint[], recovery_points text[],
  heads bytea[], bodies bytea[], refs text[], bases text[], error_codes text[],
  retry_ins bigint[], reconcile_ins bigint[]
) RETURNS SETOF idem.numbered_reply LANGUAGE plpgsql
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  due_at timestamptz;
  larger integer;
  whose text[];
  more bigint[];
  reply idem.owner_reply;
  row idem.numbered_reply;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  WITH held AS MATERIALIZED (
    -- Nobody is waited for here, so the order in which rows are locked does not matter.
    SELECT s.ctid AS place, a.number, idem.is_small(heads[a.number], bodies[a.number]) IS TRUE AS is_small, s.charged AS charge
      FROM generate_series(1, cardinality(ids)) a(number) JOIN idem.slots s ON s.id = ids[a.number]
      WHERE verbs[a.number] = 'complete' AND s.state = 'in_progress' AND s.token = tokens[a.number]
        AND fences[a.number] IN (0, s.fence)
      FOR UPDATE OF s SKIP LOCKED
  ), settled AS (
    UPDATE idem.slots s SET
      state = 'completed', request = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
      reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
      expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
      response_head = CASE WHEN h.is_small THEN heads[h.number] END,
      response_body = CASE WHEN h.is_small THEN bodies[h.number] END,
      answer = CASE WHEN NOT h.is_small THEN nextval('idem.answer_numbers') END,
      response_status = idem.status_of(heads[h.number]), body_kept = idem.has_body(heads[h.number]),
      upstream_reference = CASE refs[h.number] WHEN '' THEN s.upstream_reference ELSE refs[h.number] END,
      charged = CASE WHEN h.charge = 0 THEN 0
                     WHEN h.is_small THEN 1024      -- idem.record_charge()
                     ELSE 1024 + octet_length(heads[h.number]) + octet_length(bodies[h.number]) END
    FROM held h WHERE s.ctid = h.place
    RETURNING h.number, s.expires_at, s.answer, s.scope, s.charged - h.charge AS more
  )
  SELECT array_agg(d.number), array_agg(d.expires_at), min(d.expires_at), count(d.answer),
         array_agg(d.scope) FILTER (WHERE d.more <> 0), array_agg(d.more) FILTER (WHERE d.more <> 0)
    INTO row.usual, row.until, due_at, larger, whose, more FROM settled d;
  IF whose IS NOT NULL THEN
    PERFORM idem.note_usage(n.scope, 0, sum(n.more)::bigint) FROM unnest(whose, more) n(scope, more) GROUP BY n.scope;
  END IF;
  IF larger > 0 THEN
    INSERT INTO idem.answers
      SELECT s.expires_at, s.answer, heads[d.number], bodies[d.number]
        FROM unnest(row.usual) d(number) JOIN idem.slots s ON s.id = ids[d.number] WHERE s.answer IS NOT NULL;
  END IF;
  RETURN NEXT row;
  IF cardinality(row.usual) = cardinality(ids) THEN
    INSERT INTO idem.expiry_looks VALUES (due_at, ids);
    RETURN;
  END IF;
  IF row.usual IS NOT NULL THEN
    INSERT INTO idem.expiry_looks
      VALUES (due_at, (SELECT array_agg(ids[d.number]) FROM unnest(row.usual) d(number)));
  END IF;

  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN n = ANY (row.usual);
    reply := idem.owner_one(verbs[n], ids[n], fences[n], tokens[n], leases[n], recovery_points[n], heads[n],
                            bodies[n], refs[n], bases[n]::idem.release_basis, error_codes[n], retry_ins[n],
                            reconcile_ins[n], false);
    RETURN NEXT ROW(NULL, NULL, n, reply IS NULL, reply.state, reply.verdict, reply.expires_at)::idem.numbered_reply;
  END LOOP;
END $$;

DROP FUNCTION idem.reserve_many(bigint, integer, uuid[], text[], text[], bytea[], uuid[], text[], bigint[], text[],
                                boolean[], bigint[], bigint[]);
CREATE FUNCTION idem.reserve_many(
  asked_generation bigint, different integer, ids uuid[], scopes text[], operations text[], offered bytea[],
  tokens uuid[], owners text[], leases bigint[], policies text[], dispatches boolean[], retentions bigint[],
  tombstones bigint[], key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL, quota_keys bigint DEFAULT NULL,
  quota_bytes bigint DEFAULT NULL
) RETURNS TABLE (granted bigint[], number integer, answered idem.outcome) LANGUAGE plpgsql
-- A table that was just made has no statistics, and a plan of then is kept: by index, always.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
  at timestamptz;
  current bigint;
  shortest bigint;
  locked boolean[];
  made uuid[];
  fences bigint[];
  fresh integer[] := ARRAY(SELECT generate_series(1, different));  -- that may be made
  q idem.quota;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM idem.see_what_is_committed(); END IF;
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  -- An INSERT would wait for who holds what lies there already, or makes it. Who makes a record holds its lock
  -- until that is committed or given up. So with the lock, the next statement sees what there is, and nobody can
  -- come between: it meets no conflict.
  SELECT array_agg(pg_try_advisory_xact_lock(idem.lock_of(ids[a.number]))), min(leases[a.number]),
         (SELECT i.generation FROM idem.identity i)
    INTO locked, shortest, current FROM generate_series(1, different) a(number);
  IF current IS DISTINCT FROM asked_generation THEN PERFORM idem.in_generation(asked_generation); END IF;
  at := idem.now();
  IF key_interval IS NOT NULL THEN
    q := ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota;
    fresh := ARRAY(SELECT a.number FROM generate_series(1, different) a(number)
      WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number]));
    IF q.keys > 0 OR q.key_interval > 0 THEN
      -- In one order by all. Who waits has no other locks but of keys, for which nobody waits.
      PERFORM pg_advisory_xact_lock(1229210958, l.number)
        FROM (SELECT DISTINCT hashtext(scopes[f.number]) AS number FROM unnest(fresh) f(number) ORDER BY 1) l;
      at := idem.now();
    END IF;
    WITH numbered AS MATERIALIZED (
      SELECT f.number, scopes[f.number] AS scope,
             row_number() OVER (PARTITION BY scopes[f.number] ORDER BY f.number) AS nth
        FROM unnest(fresh) f(number)
    ), rooms AS MATERIALIZED (
      SELECT n.scope, idem.room(n.scope, q, at) AS keys FROM numbered n WHERE n.nth = 1
    )
    SELECT coalesce(array_agg(n.number ORDER BY n.number), '{}') INTO fresh
      FROM numbered n JOIN rooms r ON r.scope = n.scope WHERE n.nth <= r.keys;
  END IF;
  WITH inserted AS (
    INSERT INTO idem.slots
      (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
       lease_policy, retention, tombstone, created_at, changed_at, charged)
    SELECT ids[a.number], scopes[a.number], operations[a.number], asked_generation, substr(offered[a.number], 1, 36),
           'in_progress', nextval('idem.fences'), tokens[a.number], owners[a.number], at + idem.ms(leases[a.number]),
           dispatches[a.number],
           CASE policies[a.number] WHEN 'unknown' THEN 'unknown' ELSE policies[a.number]::idem.lease_policy END,
           retentions[a.number], tombstones[a.number],
           at, at, CASE WHEN q IS NULL THEN 0 ELSE 1024 END
    FROM unnest(fresh) a(number)
    WHERE locked[a.number] AND NOT EXISTS (SELECT FROM idem.slots s WHERE s.id = ids[a.number])
    RETURNING id, fence
  )
  SELECT array_agg(i.id), array_agg(i.fence) INTO made, fences FROM inserted i;
  IF q IS NOT NULL AND made IS NOT NULL THEN
    PERFORM idem.note_usage(n.scope, count(*), count(*) * idem.record_charge()), idem.pass_keys(n.scope, q, count(*), at)
      FROM (SELECT scopes[f.number] AS scope FROM unnest(fresh) f(number)) n GROUP BY n.scope;
  END IF;
  IF made IS NOT NULL THEN INSERT INTO idem.lease_looks VALUES (at + idem.ms(shortest), made); END IF;
  IF made = ids THEN
    granted := fences;
    RETURN NEXT;
    RETURN;
  END IF;

  granted := (SELECT array_agg(coalesce(fences[array_position(made, ids[a.number])], 0) ORDER BY a.number)
    FROM generate_series(1, different) a(number));
  fences := granted;
  RETURN NEXT;
  granted := NULL;
  FOR n IN 1..cardinality(ids) LOOP
    CONTINUE WHEN fences[n] <> 0;
    number := n;
    answered := idem.reserve_one(
      ROW(ids[n], scopes[n], operations[n], asked_generation, substr(offered[n], 1, 36), tokens[n], owners[n],
          leases[n], policies[n]::idem.lease_policy, dispatches[n], retentions[n], tombstones[n])::idem.reservation,
      idem.fingerprints(offered[n]), NULL, NULL, NULL, false, q);
    RETURN NEXT;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION idem.reap(most integer) RETURNS SETOF idem.lifecycle_step LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  at timestamptz := idem.now();
  asked uuid[];
  handled uuid[];
  states idem.state[];
  ends timestamptz[];
  later uuid[] := '{}';
  moments timestamptz[] := '{}';
  more uuid[];
  theirs timestamptz[];
  done integer := 0;
  over uuid[] := '{}';
  whose text[];
  fewer bigint[];
  less bigint[];
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM idem.be_durable();
  WHILE done < most AND clock_timestamp() < began + interval '250 ms' LOOP
    WITH next AS MATERIALIZED (
      SELECT l.ctid AS place FROM idem.expiry_looks l WHERE l.due_at <= at ORDER BY l.due_at LIMIT 8
        FOR UPDATE SKIP LOCKED
    ), taken AS (
      DELETE FROM idem.expiry_looks l USING next n WHERE l.ctid = n.place RETURNING l.ids
    )
    SELECT array_agg(DISTINCT i.id) INTO asked FROM taken t CROSS JOIN LATERAL unnest(t.ids) i(id);
    EXIT WHEN asked IS NULL;

    WITH due AS MATERIALIZED (
      SELECT t.id, t.ctid AS place, t.state, t.charged FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
        WHERE (t.state IN ('completed', 'failed_retryable') AND t.expires_at <= at
               OR t.state = 'expired' AND t.tombstone_until <= at) AND t.id <> ALL (over)
        LIMIT most - done FOR UPDATE OF t SKIP LOCKED
    ), gone AS (
      DELETE FROM idem.slots t USING due d WHERE t.ctid = d.place AND d.state <> 'completed'
        RETURNING t.id, d.state, NULL::timestamptz AS ends, t.scope,
                  CASE WHEN d.charged > 0 AND d.state <> 'expired' THEN 1 ELSE 0 END AS fewer, d.charged AS less
    ), kept AS (
      UPDATE idem.slots t SET state = 'expired', changed_at = t.expires_at, response_head = NULL,
             response_body = NULL, answer = NULL, response_status = NULL, body_kept = NULL,
             charged = CASE WHEN d.charged > 0 THEN 256 ELSE 0 END  -- idem.tombstone_charge()
        FROM due d WHERE t.ctid = d.place AND d.state = 'completed'
        RETURNING t.id, d.state, t.tombstone_until AS ends, t.scope, CASE WHEN d.charged > 0 THEN 1 ELSE 0 END AS fewer,
                  d.charged - t.charged AS less
    )
    SELECT array_agg(a.id), array_agg(a.state), array_agg(a.ends), array_agg(a.scope) FILTER (WHERE a.less > 0),
           array_agg(a.fewer) FILTER (WHERE a.less > 0), array_agg(a.less) FILTER (WHERE a.less > 0)
      INTO handled, states, ends, whose, fewer, less
      FROM (SELECT * FROM gone UNION ALL SELECT * FROM kept) a;
    IF whose IS NOT NULL THEN
      PERFORM idem.note_usage(n.scope, -sum(n.fewer)::bigint, -sum(n.less)::bigint)
        FROM unnest(whose, fewer, less) n(scope, fewer, less) GROUP BY n.scope;
    END IF;
    IF handled IS NOT NULL THEN
      RETURN QUERY SELECT h.id, h.state, CASE h.state WHEN 'completed' THEN 'expired'::idem.state END
        FROM unnest(handled, states) h(id, state);
      done := done + cardinality(handled);
      over := over || handled;           -- Of one that is in two looks, one step.
    END IF;

    -- What is left of them, and what has expired now: to be looked at again, but not in this call.
    SELECT array_agg(t.id), array_agg(CASE t.state WHEN 'expired' THEN t.tombstone_until ELSE t.expires_at END)
      INTO more, theirs
      FROM unnest(asked) i(id) JOIN idem.slots t ON t.id = i.id
      WHERE t.state IN ('completed', 'failed_retryable', 'expired');
    later := later || more;
    moments := moments || theirs;
  END LOOP;
  IF cardinality(later) > 0 THEN PERFORM idem.put_off_expiries(later, moments); END IF;
END $$;

CREATE OR REPLACE FUNCTION idem.complete_admitted(admitted text, asked_id uuid, asked_fence bigint, asked_token uuid, head bytea,
                                       body bytea, reference text) RETURNS timestamptz LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz;
  is_small boolean := idem.is_small(head, body);
  until timestamptz;
  apart bigint;
  reply idem.owner_reply;
BEGIN
  IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM admitted THEN
    PERFORM idem.must_be_admitted(admitted);
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM idem.be_durable(); END IF;
  at := idem.now();
  UPDATE idem.slots s SET
    state = 'completed', request = NULL, release_basis = NULL, last_error_code = '', reconcile_after = NULL,
    reconcile_attempts = 0, locked_until = idem.epoch(), changed_at = at, completed_at = at,
    expires_at = at + idem.ms(s.retention), tombstone_until = at + idem.ms(s.retention) + idem.ms(s.tombstone),
    response_head = CASE WHEN is_small THEN head END, response_body = CASE WHEN is_small THEN body END,
    answer = CASE WHEN NOT is_small THEN nextval('idem.answer_numbers') END,
    response_status = idem.status_of(head), body_kept = idem.has_body(head),
    upstream_reference = CASE reference WHEN '' THEN s.upstream_reference ELSE reference END
  WHERE s.id = asked_id AND s.state = 'in_progress' AND s.token = asked_token AND asked_fence IN (0, s.fence)
    AND s.charged = 0                    -- What is counted goes the long way.
  RETURNING s.expires_at, s.answer INTO until, apart;
  IF FOUND THEN
    IF apart IS NOT NULL THEN INSERT INTO idem.answers VALUES (until, apart, head, body); END IF;
    INSERT INTO idem.expiry_looks VALUES (until, ARRAY[asked_id]);
    RETURN until;
  END IF;
  reply := idem.owner_one('complete', asked_id, asked_fence, asked_token, NULL, NULL, head, body, reference, NULL, NULL,
                          NULL, NULL, false);
  IF reply.verdict = 'done' THEN RETURN reply.expires_at; END IF;
  IF reply IS NULL THEN
    RAISE EXCEPTION 'another transaction holds the record' USING ERRCODE = 'IDM04';
  END IF;
  RAISE EXCEPTION 'the attempt is not the current one, or has ended' USING DETAIL = coalesce(reply.state::text, ''),
    ERRCODE = CASE reply.verdict WHEN 'stale' THEN 'IDM01' ELSE 'IDM02' END;
END $$;

CREATE OR REPLACE FUNCTION idem.resolve(id uuid, outcome idem.state, fence bigint, head bytea, body bytea, source text,
  evidence text, reason text, observed_at timestamptz, grace bigint)
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
  is_positive boolean := outcome = 'completed';
BEGIN
  IF outcome NOT IN ('completed', 'failed_retryable') THEN
    RAISE EXCEPTION 'nothing is resolved as %', outcome USING ERRCODE = 'IDM05';
  END IF;
  PERFORM idem.be_durable();
  PERFORM idem.wait_a_while();
  SELECT * INTO s FROM idem.slots t WHERE t.id = resolve.id FOR UPDATE;
  at := idem.now();
  verdict := 'not_found';
  IF idem.is_live(s, at) THEN
    before := idem.state_at(s, at);
    verdict := CASE
      WHEN s.state IN ('in_progress', 'completed', 'expired') OR s.state <> 'unknown' AND NOT is_positive
        THEN 'wrong_state'
      -- A pending record that nobody ever ran has no attempt that evidence could speak of.
      WHEN resolve.fence = 0 OR resolve.fence <> s.fence THEN 'wrong_fence'
      WHEN is_positive AND head IS NULL THEN 'missing_response'
      WHEN is_positive THEN 'done'
      WHEN s.contested THEN 'by_evidence'
      WHEN resolve.observed_at > s.locked_until + idem.ms(grace) AND resolve.observed_at <= at THEN 'done'
      ELSE 'too_early'
    END;
    IF verdict = 'done' THEN
      IF is_positive THEN
        s := idem.finish(s, head, body, at);
      ELSE
        s := idem.release_attempt(s, 'proven', 'resolved', 0, at);
      END IF;
      PERFORM idem.put(s);
    ELSIF is_positive AND resolve.fence <> 0 AND resolve.fence = s.fence AND NOT s.contested
          AND (verdict = 'missing_response' AND s.state = 'unknown' OR verdict = 'wrong_state'
               AND (s.state = 'in_progress' OR before = 'completed' AND s.response_status >= 500)) THEN
      UPDATE idem.slots t SET contested = true WHERE t.id = s.id;
    END IF;
    state := idem.state_at(s, at);
  END IF;
  PERFORM idem.append_evidence(resolve.id, resolve.fence, source, evidence, reason, before, state,
                               verdict = 'done', resolve.observed_at, at);
  RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION idem.cache_bust(id uuid, fence bigint, reason text, source text DEFAULT 'operator')
RETURNS TABLE (verdict text, state idem.state) LANGUAGE plpgsql AS $$
DECLARE
  s idem.slots;
  at timestamptz;
  before idem.state;
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.wait_a_while();
  SELECT * INTO s FROM idem.slots t WHERE t.id = cache_bust.id FOR UPDATE;
  at := idem.now();
  verdict := 'not_found';
  IF idem.is_live(s, at) THEN
    before := idem.state_at(s, at);
    verdict := CASE
      WHEN before <> 'completed' OR s.response_status < 500 THEN 'wrong_state'
      WHEN cache_bust.fence = 0 OR cache_bust.fence <> s.fence THEN 'wrong_fence'
      WHEN s.contested OR EXISTS (SELECT FROM idem.evidence e WHERE e.id = cache_bust.id AND e.applied
                   AND e.after_state = 'completed' AND e.fence = cache_bust.fence) THEN 'by_evidence'
      ELSE 'done'
    END;
    IF verdict = 'done' THEN
      s := idem.drop_answer(s);
      s := idem.release_attempt(s, 'declared', 'cache_bust', 0, at);
      s.completed_at := NULL;
      s.tombstone_until := NULL;
      -- A repeat of its complete must not bring the answer back, so its token is forgotten; evidence may
      -- still speak of its fence.
      s.token := idem.nobody();
      PERFORM idem.put(s);
    END IF;
    state := idem.state_at(s, at);
  END IF;
  PERFORM idem.append_evidence(cache_bust.id, cache_bust.fence, source, 'cache-bust', reason, before, state,
                               verdict = 'done', at, at);
  RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION idem.release_attempt(INOUT s idem.slots, basis idem.release_basis, error_code text, retry_in bigint,
                                     at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  IF s.contested THEN
    -- Who ends it says that nothing was done, and somebody else has said that it was.
    s := idem.turn_unknown(s, error_code, at);
    s.reconcile_after := at;
    RETURN;
  END IF;
  IF s.request IS NOT NULL AND at >= s.expires_at THEN
    s := idem.time_out(s, at);
    RETURN;
  END IF;
  s := idem.clear_outcome(s);
  s.release_basis := basis;
  s.last_error_code := error_code;
  s.changed_at := at;
  IF s.request IS NOT NULL THEN
    s.state := 'pending';
    s.locked_until := at + idem.ms(retry_in);
    PERFORM idem.look_at_lease(s.id, s.expires_at);
  ELSE
    s.state := 'failed_retryable';
    s.locked_until := idem.epoch();
    s.expires_at := at + idem.ms(s.retention);
    PERFORM idem.look_at_expiry(s.id, s.expires_at);
  END IF;
END $$;

-- Walls around the new tables, too.
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT a.rolname, w.scope FROM idem.restricted_roles w JOIN pg_roles a ON a.oid = w.role LOOP
    PERFORM idem.restrict_to_scope(r.rolname, r.scope);
  END LOOP;
END $$;
