-- What the face needs of the transaction that calls it: locks, durability, isolation.

-- A record that is being made is seen by nobody until its transaction ends, and an INSERT of the same
-- key would wait for it. Who makes one holds this lock, so that others can look instead of wait. It
-- decides nothing: the primary key does. Two ids of one lock wait for each other, and no more.
CREATE OR REPLACE FUNCTION idem.lock_of(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN uuid_hash_extended(id, 0);

-- A new generation begins when no reserve of the one before can still commit: each holds this, shared,
-- until its transaction ends, and who begins one takes it alone. Two numbers: no id's lock is ever the same.
CREATE OR REPLACE FUNCTION idem.begin_generation_alone() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
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
CREATE OR REPLACE FUNCTION idem.see_what_is_committed() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'a reserve in a transaction of isolation %', current_setting('transaction_isolation')
      USING ERRCODE = 'IDM05', HINT = 'Reserve in a transaction of READ COMMITTED.';
  END IF;
END $$;

CREATE OR REPLACE FUNCTION idem.in_generation(asked bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
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

-- A transaction that must not be forgotten is not left to a setting of the session: not by a crash of the server (off), nor
-- by a failover to a standby for which a commit is set up to wait (local).
CREATE OR REPLACE FUNCTION idem.be_durable() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off'
     OR current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> '' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- How long a call of this face waits for who holds its record: as the session says, a second where it says
-- nothing. Answers what to set back.
CREATE OR REPLACE FUNCTION idem.wait_a_while() RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := current_setting('lock_timeout');
BEGIN
  IF before = '0' THEN PERFORM set_config('lock_timeout', '1s', true); END IF;
  RETURN before;
END $$;
