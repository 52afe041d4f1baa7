-- Winning the right to execute (§5): reserve and accept, for one request.

-- The step on a record that is locked and has no answer as it lies: it is run anew, or its time ends it.
-- `request`: accept it as pending instead.
CREATE OR REPLACE FUNCTION idem.reserve_step(s idem.slots, r idem.reservation, request bytea, at timestamptz, q idem.quota)
RETURNS idem.outcome LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
    IF q IS NOT NULL AND s.charged > 0 AND s.state = 'failed_retryable' THEN
      -- What was released and comes back: its request, or its answer, may be larger than what is counted.
      wait := idem.refuse_growth(r.scope, q, coalesce(octet_length(request), 0), r.retention);
      IF wait IS NOT NULL THEN RETURN idem.exceeds(r, wait); END IF;
    END IF;
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
    s := idem.take_route(s, r);
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

-- One reserve, or with `request` one accept. `also` are the other names of the same record, each with
-- the fingerprints to compare it with (joined; empty: `offered`). `patient`: wait for who holds the
-- record, as long as lock_timeout allows; otherwise the answer is that it is held.
CREATE OR REPLACE FUNCTION idem.reserve_one(r idem.reservation, offered bytea[], also uuid[], also_offered bytea[],
                                 request bytea, patient boolean, q idem.quota DEFAULT NULL) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

-- As a gateway asks for one: with the other names of the record, or to accept instead of to run.
CREATE OR REPLACE FUNCTION idem.reserve_alone(
  asked_generation bigint, id uuid, scope text, operation text, offered bytea, token uuid, owner text, lease bigint,
  policy idem.lease_policy, dispatched boolean, retention bigint, tombstone bigint, also uuid[],
  also_offered bytea[], request bytea, key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL,
  quota_keys bigint DEFAULT NULL, quota_bytes bigint DEFAULT NULL,
  provider text DEFAULT NULL, sealed_key bytea DEFAULT NULL
) RETURNS idem.outcome LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.in_generation(asked_generation);
  RETURN idem.reserve_one(
    ROW(id, scope, operation, asked_generation, substr(offered, 1, 36), token, owner, lease, policy, dispatched,
        retention, tombstone, provider, sealed_key)::idem.reservation,
    idem.fingerprints(offered), also, also_offered, request, false,
    CASE WHEN key_interval IS NOT NULL THEN ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota END);
END $$;
