-- Locks, durability and isolation of the transactions that call the functions.

-- The number of an id's advisory lock. A record is invisible until the transaction that makes it ends, and an INSERT
-- of the same key would wait for it. That transaction holds this lock, so that others can try it instead of waiting.
-- The primary key decides, not the lock: two ids of one number only wait for each other.
CREATE OR REPLACE FUNCTION idem.lock_of(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN uuid_hash_extended(id, 0);

-- A new generation begins when no reserve of the one before can still commit. Each reserve holds this lock, shared,
-- until its transaction ends; the start of a generation holds it alone. No id's lock has two numbers as this one has.
CREATE OR REPLACE FUNCTION idem.lock_generation_exclusively() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Later reserves queue behind this wait, so it waits for a moment only, again and again. A batch ends within such a
  -- moment; an application's transaction may not.
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

-- A reserve that lost a race has to see the winner, and the current generation.
CREATE OR REPLACE FUNCTION idem.must_read_committed() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'a reserve in a transaction of isolation %', current_setting('transaction_isolation')
      USING ERRCODE = 'IDM05', HINT = 'Reserve in a transaction of READ COMMITTED.';
  END IF;
END $$;

-- Holds the generation's lock, shared; raises where the store is of another generation than the caller.
CREATE OR REPLACE FUNCTION idem.lock_generation(asked bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  current bigint;
BEGIN
  PERFORM idem.must_read_committed();
  PERFORM set_config('lock_timeout', '2s', true);
  PERFORM pg_advisory_xact_lock_shared(1229210957, 1);
  SELECT i.generation INTO current FROM idem.identity i;
  IF current IS DISTINCT FROM asked THEN
    RAISE EXCEPTION 'the store''s identity is of generation %', current USING ERRCODE = 'IDM03';
  END IF;
END $$;

-- No setting of the session may let a crash of the server (off), or a failover to a synchronous standby (local), forget
-- this transaction.
CREATE OR REPLACE FUNCTION idem.be_durable() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off'
     OR current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> '' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- A call of the SQL face waits for a held record as long as the session's lock_timeout, and a second where it has none.
-- Returns the session's value, which the caller sets again.
CREATE OR REPLACE FUNCTION idem.limit_lock_wait() RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := current_setting('lock_timeout');
BEGIN
  IF before = '0' THEN PERFORM set_config('lock_timeout', '1s', true); END IF;
  RETURN before;
END $$;
