-- Messages of the SQL face (idem.enqueue_anywhere()).

CREATE OR REPLACE FUNCTION idem.enqueue(operation uuid, fence bigint, attempt uuid, destination text, type text,
  payload text, aggregatetype text DEFAULT '', aggregateid text DEFAULT '',
  content_type text DEFAULT 'application/json') RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF idem.is_restricted() THEN
    RETURN idem.enqueue_in_scope(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid,
                                 content_type);
  END IF;
  RETURN idem.enqueue_anywhere(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid,
                               content_type);
END $$;

-- The same, but returns NULL if the attempt is not the current one: then nothing is sent, and the caller must roll back
-- itself.
CREATE OR REPLACE FUNCTION idem.try_enqueue(operation uuid, fence bigint, attempt uuid, destination text, type text,
  payload text, aggregatetype text DEFAULT '', aggregateid text DEFAULT '',
  content_type text DEFAULT 'application/json') RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN idem.enqueue(operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid, content_type);
EXCEPTION WHEN SQLSTATE 'IDM01' OR SQLSTATE 'IDM02' THEN
  RETURN NULL;
END $$;
