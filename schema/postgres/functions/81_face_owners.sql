-- The owners' verbs of the SQL face.

-- Ends the attempt with an answer, which every retry gets from then on.
CREATE OR REPLACE FUNCTION idem.try_complete(operation uuid, fence bigint, attempt uuid, status integer,
  headers jsonb DEFAULT '[]', body bytea DEFAULT '', reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.try_owner('complete', operation, fence, attempt, NULL, NULL, idem.answer_head(status, headers, true),
                        body, reference, NULL, NULL, NULL);
END;

CREATE OR REPLACE FUNCTION idem.complete(operation uuid, fence bigint, attempt uuid, status integer,
  headers jsonb DEFAULT '[]', body bytea DEFAULT '', reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.must('complete', operation,
                   idem.try_complete(operation, fence, attempt, status, headers, body, reference));
END;

-- Ends the attempt as not executed: a retry executes again.
CREATE OR REPLACE FUNCTION idem.try_release(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  basis idem.release_basis DEFAULT 'proven') RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.try_owner('release', operation, fence, attempt, NULL, NULL, NULL, NULL, NULL, basis, error_code, NULL);
END;

CREATE OR REPLACE FUNCTION idem.release(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  basis idem.release_basis DEFAULT 'proven') RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.must('release', operation, idem.try_release(operation, fence, attempt, error_code, basis));
END;

-- Ends the attempt as unknown: the work may have run.
CREATE OR REPLACE FUNCTION idem.try_mark_unknown(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  reconcile_in interval DEFAULT NULL, reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.try_owner('mark_unknown', operation, fence, attempt, NULL, NULL, NULL, NULL, reference, NULL, error_code,
                        reconcile_in);
END;

CREATE OR REPLACE FUNCTION idem.mark_unknown(operation uuid, fence bigint, attempt uuid, error_code text DEFAULT '',
  reconcile_in interval DEFAULT NULL, reference text DEFAULT '') RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.must('mark_unknown', operation,
                   idem.try_mark_unknown(operation, fence, attempt, error_code, reconcile_in, reference));
END;

-- Notes that a phase committed (§16), in the transaction of that phase.
CREATE OR REPLACE FUNCTION idem.try_advance(operation uuid, fence bigint, attempt uuid, recovery_point text)
RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.try_owner('advance', operation, fence, attempt, NULL, recovery_point, NULL, NULL, NULL, NULL, NULL, NULL);
END;

CREATE OR REPLACE FUNCTION idem.advance(operation uuid, fence bigint, attempt uuid, recovery_point text)
RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.must('advance', operation, idem.try_advance(operation, fence, attempt, recovery_point));
END;

-- Extends the lease to `lease` from now.
CREATE OR REPLACE FUNCTION idem.try_renew(operation uuid, fence bigint, attempt uuid,
  lease interval DEFAULT '60 seconds')
RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.try_owner('renew', operation, fence, attempt, lease, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
END;

CREATE OR REPLACE FUNCTION idem.renew(operation uuid, fence bigint, attempt uuid, lease interval DEFAULT '60 seconds')
RETURNS idem.owner_reply LANGUAGE sql
BEGIN ATOMIC
  SELECT idem.must('renew', operation, idem.try_renew(operation, fence, attempt, lease));
END;
