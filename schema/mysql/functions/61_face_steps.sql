-- The steps of owners on one record, as src/core/transitions makes them; 62_face_reserve.sql has those of reserves. The
-- SQL face checks arguments and calls them (64_face.sql, 66_face_keys.sql), and so do the transactions of the library
-- (src/store/mysql/step_sql.cpp).
--
-- Each step is one statement that writes the record with its checksum, so that an interrupted call leaves none that
-- looks damaged (20_seal.sql); an UPDATE assigns from left to right, so the checksum is of the new values. All reads
-- lock: a transaction's snapshot may be older than the record.
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

CREATE OR REPLACE FUNCTION idem_state_name(p_state TINYINT UNSIGNED) RETURNS VARCHAR(16) CHARACTER SET ascii
DETERMINISTIC NO SQL
RETURN ELT(p_state, 'pending', 'in_progress', 'completed', 'failed_retryable', 'unknown', 'expired');

-- Counts a record's change in its scope's quota, in one of the rows from 33 to 64 (tables/0001_baseline.sql).
CREATE OR REPLACE PROCEDURE idem_add_usage(IN p_scope LONGBLOB, IN p_active BIGINT, IN p_bytes BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  IF p_active <> 0 OR p_bytes <> 0 THEN
    INSERT INTO idem_usage (scope, session, active, bytes, next_key)
      VALUES (p_scope, 33 + CONNECTION_ID() % 32, p_active, p_bytes, 0)
      ON DUPLICATE KEY UPDATE active = active + p_active, bytes = bytes + p_bytes;
  END IF;
END;

-- The record ends with an answer. The caller has its lock.
CREATE OR REPLACE PROCEDURE idem_finish(IN p_id BINARY(16), IN p_status SMALLINT UNSIGNED, IN p_head LONGBLOB,
  IN p_body LONGBLOB, IN p_reference LONGBLOB, IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_charge BIGINT UNSIGNED DEFAULT 1024 + IF(LENGTH(p_head) + LENGTH(p_body) > 1000,
                                                     LENGTH(p_head) + LENGTH(p_body), 0);
  DECLARE v_scope LONGBLOB;
  DECLARE v_charged BIGINT UNSIGNED;
  DECLARE v_state TINYINT UNSIGNED;
  SELECT scope, charged, state INTO v_scope, v_charged, v_state FROM idem_slots WHERE id = p_id FOR UPDATE;
  UPDATE idem_slots SET
    -- Compares the answer with an event that came before it.
    contested = IF(p_status < 400, state IN (2, 5) AND last_error_code = 'event_said_failed', contested),
    state = 3, locked_until = 0, changed_at = p_at, completed_at = p_at, expires_at = p_at + retention,
    due_at = p_at + retention, tombstone_until = p_at + retention + tombstone,
    charged = IF(charged = 0, 0, v_charge), release_basis = 0, last_error_code = '', reconcile_after = NULL,
    reconcile_attempts = 0, sealed_key = '', has_request = 0, answer_status = p_status,
    body_kept = ORD(SUBSTR(p_head, 4, 1)),
    upstream_reference = IF(p_reference = '', upstream_reference, p_reference),
    record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, ''))),
    answer_head = p_head, answer_body = p_body, answer_sum = idem_answer_sum(p_id, p_head, p_body),
    request = NULL, request_sum = NULL
  WHERE id = p_id;
  IF v_state = 1 THEN DELETE FROM idem_waiting WHERE id = p_id; END IF;
  IF v_charged <> 0 THEN
    CALL idem_add_usage(v_scope, 0, CAST(v_charge AS SIGNED) - CAST(v_charged AS SIGNED));
  END IF;
END;

-- A stored request that expired before it could be run.
CREATE OR REPLACE PROCEDURE idem_time_out(IN p_id BINARY(16), IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_finish(p_id, 408, CONCAT(X'01980101', idem_framed('Content-Type'), idem_framed('application/problem+json'),
    idem_framed('Cache-Control'), idem_framed('no-store')),
  CONCAT('{"type":"/.idem/problems/request_timeout","title":"The request took too long to arrive","status":408,',
    '"detail":"The stored request expired before it could be run.","code":"request_timeout","operation_ref":"',
    LOWER(CONVERT(HEX(p_id) USING utf8mb4)), '","state":"completed","retry":"never"}\n'), '', p_at);

-- Unknown: the work may have run. locked_until stays: the attempt could still send until then, and negative evidence
-- counts only after it.
CREATE OR REPLACE PROCEDURE idem_turn_unknown(IN p_id BINARY(16), IN p_error LONGBLOB,
  IN p_reconcile_after BIGINT, IN p_reference LONGBLOB, IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
UPDATE idem_slots SET
  last_error_code = IF(state IN (2, 5) AND last_error_code = 'event_said_failed', last_error_code, p_error),
  state = 5, due_at = 9223372036854775807, changed_at = p_at, release_basis = 0, reconcile_after = p_reconcile_after,
  reconcile_attempts = 0, upstream_reference = IF(p_reference = '', upstream_reference, p_reference),
  record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, '')))
WHERE id = p_id;

-- Released: the key may run again. A stored request waits for a dispatcher again, and past its expiry ends with a 408.
CREATE OR REPLACE PROCEDURE idem_release_attempt(IN p_id BINARY(16), IN p_basis TINYINT UNSIGNED,
  IN p_error LONGBLOB, IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_contested, v_has_request TINYINT UNSIGNED;
  DECLARE v_expires_at BIGINT;
  SELECT contested, has_request, expires_at INTO v_contested, v_has_request, v_expires_at FROM idem_slots
    WHERE id = p_id FOR UPDATE;
  IF v_contested THEN
    -- Evidence says that the attempt ran, and its end says that it did not.
    CALL idem_turn_unknown(p_id, p_error, p_at, '', p_at);
  ELSEIF v_has_request AND p_at >= v_expires_at THEN
    CALL idem_time_out(p_id, p_at);
  ELSE
    UPDATE idem_slots SET
      state = IF(has_request, 1, 4), release_basis = p_basis, last_error_code = p_error, changed_at = p_at,
      reconcile_after = NULL, reconcile_attempts = 0, locked_until = IF(has_request, p_at, 0),
      expires_at = IF(has_request, expires_at, p_at + retention), due_at = expires_at,
      record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, '')))
    WHERE id = p_id;
    IF v_has_request THEN
      INSERT INTO idem_waiting (id, claim_at) VALUES (p_id, p_at) ON DUPLICATE KEY UPDATE claim_at = p_at;
    END IF;
  END IF;
END;

-- One owner's verb. Verdicts: done, settled, stale, damaged. `p_head` has the status of a completion.
CREATE OR REPLACE PROCEDURE idem_owner_step(IN p_verb VARBINARY(16), IN p_id BINARY(16), IN p_fence BIGINT UNSIGNED,
  IN p_token BINARY(16), IN p_lease BIGINT, IN p_point LONGBLOB, IN p_head LONGBLOB, IN p_body LONGBLOB,
  IN p_reference LONGBLOB, IN p_basis TINYINT UNSIGNED, IN p_error LONGBLOB, IN p_reconcile_in BIGINT,
  OUT p_verdict VARCHAR(8) CHARACTER SET ascii, OUT p_state TINYINT UNSIGNED, OUT p_expires_at BIGINT,
  OUT p_contested TINYINT UNSIGNED)
SQL SECURITY DEFINER MODIFIES SQL DATA
step: BEGIN
  DECLARE v_is_sound, v_was, v_dispatched TINYINT UNSIGNED;
  DECLARE v_fence BIGINT UNSIGNED;
  DECLARE v_token BINARY(16);
  DECLARE v_at, v_locked_until, v_gone_at BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_was = NULL;
  SET p_verdict = 'stale', p_state = NULL, p_expires_at = NULL, p_contested = 0;
  SELECT state, fence, token, locked_until, dispatched,
      CASE state WHEN 4 THEN expires_at WHEN 3 THEN tombstone_until WHEN 6 THEN tombstone_until END,
      record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, '')))
    INTO v_was, v_fence, v_token, v_locked_until, v_dispatched, v_gone_at, v_is_sound
    FROM idem_slots WHERE id = p_id FOR UPDATE;
  SET v_at = idem_now();
  IF v_was IS NULL THEN LEAVE step; END IF;
  IF NOT v_is_sound THEN SET p_verdict = 'damaged'; LEAVE step; END IF;
  IF v_at >= v_gone_at THEN LEAVE step; END IF;
  -- A token of zeros is of no attempt: it was forgotten on purpose.
  IF v_fence <> 0 AND (p_fence = 0 OR p_fence = v_fence) AND p_token = v_token AND v_token <> REPEAT(X'00', 16) THEN
    SET p_verdict = 'done';
    IF v_was IN (3, 6) THEN
      SET p_verdict = 'settled';
    ELSEIF p_verb IN ('admit', 'enqueue') THEN
      IF p_verb = 'enqueue' AND v_was <> 2 THEN SET p_verdict = 'stale'; END IF;
    ELSEIF p_verb = 'complete' THEN
      CALL idem_finish(p_id, idem_number_at(p_head, 2, 2), p_head, p_body, p_reference, v_at);
    ELSEIF p_verb = 'release' THEN
      IF v_was IN (2, 5) THEN CALL idem_release_attempt(p_id, p_basis, p_error, v_at); END IF;
    ELSEIF p_verb = 'mark_unknown' THEN
      IF v_was = 2 THEN
        CALL idem_turn_unknown(p_id, p_error, v_at + p_reconcile_in, p_reference, v_at);
      ELSEIF v_was <> 5 THEN
        SET p_verdict = 'settled';
      END IF;
    ELSEIF v_was <> 2 OR v_at >= v_locked_until THEN
      SET p_verdict = 'stale';
    ELSE
      -- A renewal that arrives late never shortens the lease.
      UPDATE idem_slots SET
        locked_until = IF(p_verb = 'renew', GREATEST(locked_until, v_at + p_lease), locked_until),
        recovery_point = IF(p_verb = 'advance', p_point, recovery_point),
        due_at = IF(dispatched AND lease_policy <> 1, 9223372036854775807, locked_until),
        record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, '')))
      WHERE id = p_id;
    END IF;
  END IF;
  SELECT IF(state = 3 AND v_at >= expires_at, 6, state), IF(state IN (2, 5), NULL, expires_at), contested
    INTO p_state, p_expires_at, p_contested FROM idem_slots WHERE id = p_id FOR UPDATE;
END;

-- The same as a row, for the library. p_must: any verdict but done is an error behind the row, so that a COMMIT in the
-- same packet is not executed.
CREATE OR REPLACE PROCEDURE idem_step_row(IN p_must TINYINT, IN p_verb VARCHAR(16) CHARACTER SET utf8mb4,
  IN p_id BINARY(16), IN p_fence BIGINT UNSIGNED, IN p_token BINARY(16), IN p_point LONGBLOB, IN p_head LONGBLOB,
  IN p_body LONGBLOB, IN p_reference LONGBLOB, IN p_error LONGBLOB, IN p_reconcile_in BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_verdict VARCHAR(8) CHARACTER SET ascii;
  DECLARE v_state, v_contested TINYINT UNSIGNED;
  DECLARE v_expires_at BIGINT;
  CALL idem_owner_step(p_verb, p_id, p_fence, p_token, 1, p_point, p_head, p_body, p_reference, 1, p_error,
    p_reconcile_in, v_verdict, v_state, v_expires_at, v_contested);
  SELECT v_verdict, v_state, v_expires_at, v_contested;
  IF p_must THEN CALL idem_must(p_verb, p_id, v_verdict, v_state); END IF;
END;

-- Of an attempt whose rows may be committed without its completion: no call can end the record by its token any more.
CREATE OR REPLACE PROCEDURE idem_forget_attempt(IN p_id BINARY(16), IN p_token BINARY(16))
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  UPDATE idem_slots SET token = REPEAT(X'00', 16) WHERE id = p_id AND token = p_token AND state = 5;
  CALL idem_seal(p_id);
END;

SET NAMES binary;
