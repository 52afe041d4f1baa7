-- Journals: lists of lines by name, to which gateways and workers append what operators did.

-- Of a line. It shows damage; this is not a signature.
CREATE OR REPLACE FUNCTION idem.journal_checksum(name text, seq bigint, at timestamptz, line bytea) RETURNS bytea
LANGUAGE sql STABLE
RETURN substr(sha256(idem.length_framed(convert_to(name, 'UTF8')) || int8send(seq) || timestamptz_send(at) || line),
              1, 8);

CREATE OR REPLACE FUNCTION idem.journal_is_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF NOT starts_with(OLD.name, 'audit') THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'lines of idem.journal are append-only' USING ERRCODE = 'IDM09';
END $$;

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE ON idem.journal
  FOR EACH ROW EXECUTE FUNCTION idem.journal_is_append_only();
CREATE OR REPLACE TRIGGER never_truncated BEFORE TRUNCATE ON idem.journal
  EXECUTE FUNCTION idem.journal_is_append_only();

-- A role from which row-level security hides the lines would see an empty audit, and call it whole.
CREATE OR REPLACE FUNCTION idem.must_see_journals() RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF row_security_active('idem.journal') THEN
    RAISE EXCEPTION 'row-level security hides the audit and all other journals from the role %', current_user
      USING ERRCODE = '42501', HINT = 'Connect as the owner of the tables, or as a role with BYPASSRLS.';
  END IF;
END $$;

-- Of two appenders, or an appender and one who drops, the second sees what the first did.
CREATE OR REPLACE FUNCTION idem.lock_journal(journal text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.must_see_journals();
  PERFORM idem.must_read_committed();
  PERFORM idem.be_durable();
  PERFORM set_config('lock_timeout', '500ms', true);  -- Other calls wait behind this one.
  PERFORM pg_advisory_xact_lock(1229210960, hashtext(journal COLLATE "C"));
END $$;

-- Appends a line if `behind` is the number of the last one. `of_moment`: that of a line from another store.
CREATE OR REPLACE FUNCTION idem.append_line(journal text, behind bigint, bytes bytea, of_moment timestamptz)
RETURNS TABLE (appended boolean, last bigint, moment timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  so_far bigint;
BEGIN
  PERFORM idem.lock_journal(journal);
  moment := coalesce(of_moment, idem.now());
  SELECT j.seq, j.total INTO last, so_far FROM idem.journal j WHERE j.name = journal COLLATE "C"
    ORDER BY j.seq DESC LIMIT 1;
  last := coalesce(last, 0);
  appended := last = behind;
  IF appended THEN
    last := behind + 1;
    INSERT INTO idem.journal (name, seq, at, line, total, checksum)
      VALUES (journal, last, moment, bytes, coalesce(so_far, 0) + length(bytes),
              idem.journal_checksum(journal, last, moment, bytes));
  END IF;
  RETURN NEXT;
END $$;

-- First a row without a line, which has the number of the last line; then lines until they have `most_bytes`.
CREATE OR REPLACE FUNCTION idem.read_lines(journal text, behind bigint, most bigint, most_bytes bigint)
RETURNS TABLE (last bigint, moment timestamptz, seq bigint, at timestamptz, line bytea, damaged boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bytes bigint := 0;
BEGIN
  PERFORM idem.must_see_journals();
  moment := idem.now();
  SELECT coalesce(max(j.seq), 0) INTO last FROM idem.journal j WHERE j.name = journal COLLATE "C";
  RETURN NEXT;
  FOR seq, at, line, damaged IN
    SELECT j.seq, j.at, j.line, j.checksum <> idem.journal_checksum(j.name, j.seq, j.at, j.line) FROM idem.journal j
      WHERE j.name = journal COLLATE "C" AND j.seq > behind ORDER BY j.seq LIMIT most
  LOOP
    EXIT WHEN bytes > 0 AND bytes + length(line) > most_bytes;
    bytes := bytes + length(line);
    RETURN NEXT;
  END LOOP;
END $$;

-- From name to name, so that it reads one row of each journal and not all of their lines.
CREATE OR REPLACE FUNCTION idem.list_journals(prefix text, behind text, most bigint)
RETURNS TABLE (name text, last bigint, bytes bigint) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.must_see_journals();
  FOR n IN 1..most LOOP
    SELECT j.name INTO name FROM idem.journal j
      WHERE j.name > behind COLLATE "C" AND j.name >= prefix COLLATE "C" ORDER BY j.name LIMIT 1;
    EXIT WHEN name IS NULL OR NOT starts_with(name, prefix);
    SELECT j.seq, j.total INTO last, bytes FROM idem.journal j
      WHERE j.name = list_journals.name COLLATE "C" ORDER BY j.seq DESC LIMIT 1;
    behind := name;
    RETURN NEXT;
  END LOOP;
END $$;

-- Removes a journal if `expected` is the number of its last line.
CREATE OR REPLACE FUNCTION idem.drop_journal(journal text, expected bigint)
RETURNS TABLE (dropped boolean, last bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.lock_journal(journal);
  SELECT coalesce(max(j.seq), 0) INTO last FROM idem.journal j WHERE j.name = journal COLLATE "C";
  dropped := last = expected;
  IF dropped THEN
    DELETE FROM idem.journal j WHERE j.name = journal COLLATE "C";
    last := 0;
  END IF;
  RETURN NEXT;
END $$;
