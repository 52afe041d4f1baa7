-- Winning the right to execute (§5): reserve and accept, for one request.

-- What is asked; its fields are those of the record that it makes.
CREATE TYPE idem.reservation AS (
  id uuid,
  scope text,
  operation text,
  generation bigint,
  fingerprint bytea,                     -- what is stored; the others of `offered` only match
  token uuid,
  owner text,
  lease bigint,
  lease_policy idem.lease_policy,
  dispatched boolean,
  retention bigint,
  tombstone bigint
);

-- A record that is being made is seen by nobody until its transaction ends, and an INSERT of the same
-- key would wait for it. Who makes one holds this lock, so that others can look instead of wait. It
-- decides nothing: the primary key does. Two ids of one lock wait for each other, and no more.
CREATE FUNCTION idem.lock_of(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN uuid_hash_extended(id, 0);

-- A new generation begins when no reserve of the one before can still commit: each holds this, shared,
-- until its transaction ends, and who begins one takes it alone. Two numbers: no id's lock is ever the same.
CREATE FUNCTION idem.begin_generation_alone() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- Who waits here holds up all reserves that come later, so it waits for a moment only, again and again: a batch
  -- is over by then, and an application's transaction may take long.
  FOR round IN 1..15 LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '100ms', true);
      PERFORM pg_advisory_xact_lock(1229210957, 1);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_sleep(0.2);
    END;
  END LOOP;
  RAISE EXCEPTION 'transactions that reserved are still open' USING ERRCODE = 'IDM04';
END $$;

-- A reserve that lost a race has to see the winner, and the generation of now.
CREATE FUNCTION idem.see_what_is_committed() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'a reserve in a transaction of isolation %', current_setting('transaction_isolation')
      USING ERRCODE = 'IDM05', HINT = 'Reserve in a transaction of READ COMMITTED.';
  END IF;
END $$;

CREATE FUNCTION idem.in_generation(asked bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  current bigint;
BEGIN
  PERFORM idem.see_what_is_committed();
  PERFORM set_config('lock_timeout', '2s', true);
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  SELECT i.generation INTO current FROM idem.identity i;
  IF current IS DISTINCT FROM asked THEN
    RAISE EXCEPTION 'the store''s identity is of generation %', current USING ERRCODE = 'IDM03';
  END IF;
END $$;

-- A transaction that must not be forgotten is not left to a setting of the session.
CREATE FUNCTION idem.be_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- How long a call of this face waits for who holds its record: as the session says, a second where it says
-- nothing. Answers what to set back.
CREATE FUNCTION idem.wait_a_while() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before text := current_setting('lock_timeout');
BEGIN
  IF before = '0' THEN PERFORM set_config('lock_timeout', '1s', true); END IF;
  RETURN before;
END $$;

CREATE FUNCTION idem.fresh(r idem.reservation, at timestamptz) RETURNS idem.slots LANGUAGE plpgsql AS $$
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
  s.upstream_reference := '';
  s.created_at := at;
  s.changed_at := at;
  RETURN s;
END $$;

-- False where there is a record of this id, committed or being made: nothing was written then.
CREATE FUNCTION idem.insert_new(s idem.slots) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO idem.slots
    (id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until, dispatched,
     lease_policy, retention, tombstone, recovery_point, request, created_at, changed_at, expires_at)
  VALUES
    (s.id, s.scope, s.operation, s.generation, s.fingerprint, s.state, s.fence, s.token, s.owner, s.locked_until,
     s.dispatched, s.lease_policy, s.retention, s.tombstone, s.recovery_point, s.request, s.created_at,
     s.changed_at, s.expires_at)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM idem.keep_standing(s);
  RETURN true;
END $$;

-- True when the answer is in the record as it lies, and nothing has to be written for it.
CREATE FUNCTION idem.is_answered(s idem.slots, offered bytea[], at timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN idem.is_live(s, at) AND (
  NOT idem.matches(offered, s.fingerprint)
  OR CASE s.state
       WHEN 'in_progress' THEN at < s.locked_until
       WHEN 'pending' THEN at < s.expires_at
       WHEN 'failed_retryable' THEN false
       ELSE true
     END);

-- The answer in a record that has one.
CREATE FUNCTION idem.read_answer(s idem.slots, r idem.reservation, offered bytea[], accepts boolean, at timestamptz)
RETURNS idem.outcome LANGUAGE plpgsql AS $$
BEGIN
  IF NOT idem.matches(offered, s.fingerprint) THEN RETURN idem.misuses(s, offered, at); END IF;
  -- Only the token proves that the reservation is the asker's (§4).
  IF NOT accepts AND s.state = 'in_progress' AND idem.is_same_attempt(s, 0, r.token) THEN
    RETURN idem.executes(s, false, false);
  END IF;
  RETURN idem.answers_as(s, false, at);
END $$;

-- The step on a record that is locked and has no answer as it lies: it is run anew, or its time ends it.
-- `request`: accept it as pending instead.
CREATE FUNCTION idem.reserve_step(s idem.slots, r idem.reservation, request bytea, at timestamptz)
RETURNS idem.outcome LANGUAGE plpgsql AS $$
DECLARE
  before idem.slots := s;
  ended boolean;
  o idem.outcome;
BEGIN
  IF NOT idem.is_live(s, at) THEN
    s := idem.fresh(r, at);
    ended := false;
  ELSE
    s := idem.swept(s, at);
    ended := before.state = 'in_progress';
    IF s.state NOT IN ('in_progress', 'failed_retryable') THEN
      PERFORM idem.put(s);
      IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
      RETURN idem.answers_as(s, ended, at);
    END IF;
    IF request IS NOT NULL AND s.state = 'in_progress' THEN
      -- A resumable attempt whose owner is gone. Only a reserve takes it up (§3).
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

CREATE FUNCTION idem.accepted(INOUT s idem.slots, request bytea, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  s.state := 'pending';
  s.request := accepted.request;
  s.release_basis := NULL;
  s.last_error_code := '';
  s.dispatched := false;
  s.changed_at := at;
  s.locked_until := at;
  s.expires_at := at + idem.ms(s.retention);
  PERFORM idem.look_at_lease(s.id, s.expires_at);
END $$;

-- Somebody's transaction holds the record, or makes it: as far as anybody can see, that is in progress.
-- The lease is the one that is committed; of a record that is only being made, the asker's own.
CREATE FUNCTION idem.is_held(s idem.slots, r idem.reservation, at timestamptz) RETURNS idem.outcome
LANGUAGE plpgsql AS $$
DECLARE
  o idem.outcome;
BEGIN
  o.outcome := 'in_progress';
  o.operation := coalesce(s.id, r.id);   -- perhaps under another name
  o.fence := coalesce(s.fence, 0);
  o.state := 'in_progress';
  o.locked_until := greatest(coalesce(s.locked_until, at + idem.ms(r.lease)), at + interval '1 ms');
  o.lease_remaining := idem.ms_until(o.locked_until, at);
  o.again := true;                       -- in_progress: not known, but held
  RETURN o;
END $$;

CREATE FUNCTION idem.fingerprints(joined bytea) RETURNS bytea[] LANGUAGE sql IMMUTABLE
RETURN (SELECT array_agg(substr(joined, 36 * n + 1, 36) ORDER BY n) FROM generate_series(0, length(joined) / 36 - 1) n);

-- One reserve, or with `request` one accept. `also` are the other names of the same record, each with
-- the fingerprints to compare it with (joined; empty: `offered`). `patient`: wait for who holds the
-- record, as long as lock_timeout allows; otherwise the answer is that it is held.
CREATE FUNCTION idem.reserve_one(r idem.reservation, offered bytea[], also uuid[], also_offered bytea[],
                                 request bytea, patient boolean) RETURNS idem.outcome
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
      s := idem.fresh(r, at);
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
    RETURN idem.reserve_step(other, r, request, at);
  END LOOP;
  RAISE EXCEPTION 'the record of % comes and goes', idem.handle(r.id) USING ERRCODE = 'IDM04';
END $$;

-- As a gateway asks for one: with the other names of the record, or to accept instead of to run.
CREATE FUNCTION idem.reserve_alone(
  asked_generation bigint, id uuid, scope text, operation text, offered bytea, token uuid, owner text, lease bigint,
  policy idem.lease_policy, dispatched boolean, retention bigint, tombstone bigint, also uuid[],
  also_offered bytea[], request bytea
) RETURNS idem.outcome LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.in_generation(asked_generation);
  RETURN idem.reserve_one(
    ROW(id, scope, operation, asked_generation, substr(offered, 1, 36), token, owner, lease, policy, dispatched,
        retention, tombstone)::idem.reservation,
    idem.fingerprints(offered), also, also_offered, request, false);
END $$;
