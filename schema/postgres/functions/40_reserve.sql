-- Winning the right to execute (§5): reserve and accept, for one request.

-- The live record among the other names of a key, `also`, each with the fingerprints to compare it with (joined; empty:
-- `offered`), and the fingerprints that go with its name. Of several, the record of the same request counts, then the
-- first. `s`: the row under `own_id`, which is not a live record of this request.
CREATE OR REPLACE FUNCTION idem.find_under_names(INOUT s idem.slots, own_id uuid, offered bytea[], also uuid[],
                                      also_offered bytea[], at timestamptz, OUT compared bytea[]) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  other idem.slots;
BEGIN
  FOR n IN 1..cardinality(also) LOOP
    SELECT * INTO other FROM idem.slots t WHERE t.id = also[n];
    IF idem.contradicts_itself(other) THEN
      s := other;
      RETURN;
    END IF;
    CONTINUE WHEN NOT idem.is_live(other, at);
    IF also_offered[n] = '' THEN compared := offered; ELSE compared := idem.fingerprints(also_offered[n]); END IF;
    IF idem.matches(compared, other.fingerprint) THEN
      s := other;
      RETURN;
    END IF;
    IF NOT idem.is_live(s, at) THEN s := other; END IF;
  END LOOP;
  compared := offered;
  FOR n IN 1..cardinality(also) LOOP
    IF also[n] = s.id AND s.id <> own_id AND also_offered[n] <> '' THEN
      compared := idem.fingerprints(also_offered[n]);
      RETURN;
    END IF;
  END LOOP;
END $$;

-- Waits for the lock of a new record's id as long as lock_timeout allows. False: another transaction still holds it.
CREATE OR REPLACE FUNCTION idem.wait_for_id(id uuid) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(idem.lock_of(id));
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

-- Locks all ids of a key, in their order. False: another transaction holds one of them.
CREATE OR REPLACE FUNCTION idem.lock_ids(ids uuid[], patient boolean) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id uuid;
BEGIN
  FOR id IN SELECT n FROM unnest(ids) n ORDER BY n LOOP
    CONTINUE WHEN pg_try_advisory_xact_lock(idem.lock_of(id));
    IF NOT patient OR NOT idem.wait_for_id(id) THEN RETURN false; END IF;
  END LOOP;
  RETURN true;
END $$;

-- Locks a record that did not answer as it was read (`unlocked`), then begins a new attempt or accepts the request, or
-- ends what its time has ended. A result without an outcome: the record has gone, and the key is to be looked up again.
CREATE OR REPLACE FUNCTION idem.reserve_existing(unlocked idem.slots, r idem.reservation, compared bytea[],
                                      request bytea, patient boolean, at timestamptz, q idem.quota) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before idem.slots;
  s idem.slots;
  ended boolean := false;
  wait bigint;
  o idem.outcome;
BEGIN
  IF patient THEN
    BEGIN
      SELECT * INTO before FROM idem.slots t WHERE t.id = unlocked.id FOR UPDATE;
    EXCEPTION WHEN lock_not_available THEN
      RETURN idem.held_outcome(unlocked, r, idem.now());
    END;
  ELSE
    SELECT * INTO before FROM idem.slots t WHERE t.id = unlocked.id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      IF NOT EXISTS (SELECT FROM idem.slots t WHERE t.id = unlocked.id) THEN RETURN NULL; END IF;
      RETURN idem.held_outcome(unlocked, r, at);
    END IF;
  END IF;
  at := idem.now();
  IF idem.contradicts_itself(before) THEN RETURN idem.damaged_outcome(before); END IF;
  -- A record under another name that is over by now is not replaced: the key may have a record under its own name.
  IF before.id IS NULL OR before.id <> r.id AND NOT idem.is_live(before, at) THEN RETURN NULL; END IF;
  IF idem.is_answered(before, compared, at) THEN
    RETURN idem.answered_outcome(before, r, compared, request IS NOT NULL, at);
  END IF;
  IF q IS NOT NULL THEN
    -- The request or answer of a released record that runs again may be larger than its scope counts.
    wait := CASE WHEN NOT idem.is_live(before, at)
        THEN idem.refuse_new_key(r.scope, q, r.retention, at, idem.active_of(before), before.charged)
      WHEN before.charged > 0 AND before.state = 'failed_retryable'
        THEN idem.refuse_more_bytes(r.scope, q, coalesce(octet_length(request), 0), r.retention) END;
    IF wait IS NOT NULL THEN RETURN idem.quota_outcome(r, wait); END IF;
  END IF;
  IF NOT idem.is_live(before, at) THEN
    s := idem.new_record(r, at);
    IF q IS NOT NULL THEN s.charged := idem.record_charge(); END IF;
  ELSE
    s := idem.end_overdue(before, at);
    ended := before.state = 'in_progress';
    IF s.state NOT IN ('in_progress', 'failed_retryable') THEN
      PERFORM idem.update_record(s);
      IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
      RETURN idem.state_outcome(s, ended, at);
    END IF;
    IF request IS NOT NULL AND s.state = 'in_progress' AND (s.request IS NOT NULL OR s.lease_policy <> 'rerun') THEN
      RETURN idem.resumable_outcome(s, at);
    END IF;
    s := idem.apply_route(s, r);
  END IF;
  IF request IS NOT NULL THEN
    s := idem.accept_request(s, request, at);
    o := idem.state_outcome(s, ended, at);
  ELSE
    s := idem.begin_attempt(s, r.token, r.owner, r.lease, r.dispatched, at);
    o := idem.execute_outcome(s, idem.is_live(before, at), ended);
  END IF;
  PERFORM idem.update_record(s);
  IF ended THEN PERFORM idem.note_ended_lease(before, s.state, 'reserve', at); END IF;
  RETURN o;
END $$;

-- One reserve, or with `request` one accept. `also`: the other names of the key (idem.find_under_names()). `patient`:
-- waits for a held record as long as lock_timeout allows; otherwise it answers at once that the record is held.
CREATE OR REPLACE FUNCTION idem.reserve_one(r idem.reservation, offered bytea[], also uuid[], also_offered bytea[],
                                 request bytea, patient boolean, q idem.quota DEFAULT NULL) RETURNS idem.outcome
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s idem.slots;
  named record;
  compared bytea[];
  at timestamptz;
  has_names boolean := coalesce(cardinality(also), 0) > 0;
  has_locked boolean := NOT has_names;
  wait bigint;
  o idem.outcome;
BEGIN
  -- A row that vanishes between two reads is read again, a few times (§5).
  FOR round IN 1..6 LOOP
    at := idem.now();
    compared := offered;
    SELECT * INTO s FROM idem.slots t WHERE t.id = r.id;
    IF idem.contradicts_itself(s) THEN RETURN idem.damaged_outcome(s); END IF;
    IF has_names AND NOT (idem.is_live(s, at) AND idem.matches(offered, s.fingerprint)) THEN
      named := idem.find_under_names(s, r.id, offered, also, also_offered, at);
      s := named.s;
      compared := named.compared;
      IF idem.contradicts_itself(s) THEN RETURN idem.damaged_outcome(s); END IF;
    END IF;
    IF idem.is_answered(s, compared, at) THEN
      o := idem.answered_outcome(s, r, compared, request IS NOT NULL, at);
      CONTINUE WHEN o.outcome = 'damaged' AND round < 3;
      RETURN o;
    END IF;

    -- While this transaction reads one name, another may take up or end the record of the next one; and a record that
    -- is only being made is invisible. So a reserve of several names locks all of them, and reads again.
    IF NOT has_locked THEN
      has_locked := idem.lock_ids(also || r.id, patient);
      CONTINUE WHEN has_locked;
      RETURN idem.held_outcome(s, r, CASE WHEN patient THEN idem.now() ELSE at END);
    END IF;

    IF s.id IS NOT NULL THEN
      o := idem.reserve_existing(s, r, compared, request, patient, at, q);
      CONTINUE WHEN o.outcome IS NULL;
      RETURN o;
    END IF;

    IF NOT pg_try_advisory_xact_lock(idem.lock_of(r.id)) THEN
      IF NOT patient THEN RETURN idem.held_outcome(s, r, at); END IF;
      CONTINUE WHEN idem.wait_for_id(r.id);  -- The other transaction has made the record, or was rolled back.
      RETURN idem.held_outcome(s, r, idem.now());
    END IF;
    IF q IS NOT NULL THEN
      -- If the record was made between the read and the lock, this is a retry.
      CONTINUE WHEN EXISTS (SELECT FROM idem.slots t WHERE t.id = r.id);
      wait := idem.refuse_new_key(r.scope, q, r.retention, at);
      IF wait IS NOT NULL THEN RETURN idem.quota_outcome(r, wait); END IF;
    END IF;
    s := idem.new_record(r, at);
    IF q IS NOT NULL THEN s.charged := idem.record_charge(); END IF;
    IF request IS NULL THEN
      s := idem.begin_attempt(s, r.token, r.owner, r.lease, r.dispatched, at);
    ELSE
      s := idem.accept_request(s, request, at);
    END IF;
    CONTINUE WHEN NOT idem.insert_new(s);
    IF request IS NULL THEN RETURN idem.execute_outcome(s, false, false); END IF;
    RETURN idem.state_outcome(s, false, at);
  END LOOP;
  RAISE EXCEPTION 'the record of % changes too often; try again', idem.handle(r.id) USING ERRCODE = 'IDM04';
END $$;

-- A gateway's call for one record: with the other names of its key, or to accept instead of to execute.
CREATE OR REPLACE FUNCTION idem.reserve_alone(
  asked_generation bigint, id uuid, scope text, operation text, offered bytea, token uuid, owner text, lease bigint,
  policy idem.lease_policy, dispatched boolean, retention bigint, tombstone bigint, also uuid[],
  also_offered bytea[], request bytea, key_interval bigint DEFAULT NULL, at_once bigint DEFAULT NULL,
  quota_keys bigint DEFAULT NULL, quota_bytes bigint DEFAULT NULL,
  provider text DEFAULT NULL, sealed_key bytea DEFAULT NULL
) RETURNS idem.outcome LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.be_durable();
  PERFORM idem.lock_generation(asked_generation);
  RETURN idem.reserve_one(
    ROW(id, scope, operation, asked_generation, substr(offered, 1, 36), token, owner, lease, policy, dispatched,
        retention, tombstone, provider, sealed_key)::idem.reservation,
    idem.fingerprints(offered), also, also_offered, request, false,
    CASE WHEN key_interval IS NOT NULL THEN ROW(key_interval, at_once, quota_keys, quota_bytes)::idem.quota END);
END $$;
