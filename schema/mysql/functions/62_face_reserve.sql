-- Winning the right to execute (protocol.md §5) for one key under one name. Keys with other names, and quotas, are
-- reserved by the store's own steps (src/store/mysql/locked_records.cpp).
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

-- True if `p_offered`, fingerprints of 36 bytes each, has this one.
CREATE OR REPLACE FUNCTION idem_matches(p_offered LONGBLOB, p_stored VARBINARY(36)) RETURNS TINYINT
DETERMINISTIC NO SQL
BEGIN
  DECLARE v_at INT DEFAULT 1;
  DECLARE v_is_met TINYINT DEFAULT 0;
  WHILE v_at <= LENGTH(p_offered) DO
    SET v_is_met = v_is_met OR SUBSTR(p_offered, v_at, 36) = p_stored, v_at = v_at + 36;
  END WHILE;
  RETURN v_is_met;
END;

-- True if two unequal fingerprints prove two requests: version 1, one rule, bodies whose values Idem could read as one
-- kind, and other values. Behind the version: 8 bytes of the rule, 1 of the kind (0: unread), 7 of the values.
CREATE OR REPLACE FUNCTION idem_prove_two_requests(p_a VARBINARY(36), p_b VARBINARY(36)) RETURNS TINYINT
DETERMINISTIC NO SQL
RETURN LEFT(p_a, 4) = X'00000001' AND LEFT(p_a, 13) = LEFT(p_b, 13)
   AND SUBSTR(p_a, 13, 1) IN (X'01', X'02', X'03') AND SUBSTR(p_a, 14, 7) <> SUBSTR(p_b, 14, 7);

-- The end of a lease by a reserve is a decision about the record, too (§19).
CREATE OR REPLACE PROCEDURE idem_note_ended_lease(IN p_id BINARY(16), IN p_fence BIGINT UNSIGNED, IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_after TINYINT UNSIGNED;
  DECLARE v_entry LONGBLOB;
  SELECT state INTO v_after FROM idem_slots WHERE id = p_id FOR UPDATE;
  SET v_entry = CONCAT(idem_le(p_fence, 8), X'02', idem_le(v_after, 1), X'01', idem_le(p_at, 8), idem_le(p_at, 8),
                       idem_framed('reserve'), idem_framed('lease_expired'), idem_framed(''));
  INSERT INTO idem_evidence (id, entry) VALUES (p_id, CONCAT(v_entry, idem_le(CRC32(CONCAT(p_id, v_entry)), 4)));
END;

-- A new attempt of a live record: the route's current settings hold from now on; the recovery point stays. The
-- reference names an earlier attempt's work, and a question about this attempt must not use it.
CREATE OR REPLACE PROCEDURE idem_begin_again(IN p_id BINARY(16), IN p_fence BIGINT UNSIGNED, IN p_token BINARY(16),
  IN p_owner LONGBLOB, IN p_lease BIGINT, IN p_policy TINYINT UNSIGNED, IN p_dispatched TINYINT UNSIGNED,
  IN p_retention BIGINT, IN p_tombstone BIGINT, IN p_provider LONGBLOB, IN p_sealed_key LONGBLOB,
  IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
UPDATE idem_slots SET
  lease_policy = p_policy, retention = p_retention, tombstone = p_tombstone, provider = p_provider,
  sealed_key = p_sealed_key, state = 2, fence = p_fence, token = p_token, owner = p_owner,
  locked_until = p_at + p_lease, dispatched = p_dispatched,
  due_at = IF(p_dispatched AND p_policy <> 1, 9223372036854775807, p_at + p_lease), release_basis = 0,
  last_error_code = '', reconcile_after = NULL, reconcile_attempts = 0, upstream_reference = '', contested = 0,
  changed_at = p_at, expires_at = IF(has_request, expires_at, NULL),
  record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, '')))
WHERE id = p_id;

-- Makes the record with its first attempt, or locks the one that is there. Not by a locking read first: under
-- REPEATABLE READ that would lock the gap, and two such transactions would end each other.
CREATE OR REPLACE PROCEDURE idem_insert_new(IN p_id BINARY(16), IN p_generation BIGINT UNSIGNED,
  IN p_scope LONGBLOB, IN p_operation LONGBLOB, IN p_fingerprint VARBINARY(36), IN p_fence BIGINT UNSIGNED,
  IN p_token BINARY(16), IN p_owner LONGBLOB, IN p_lease BIGINT, IN p_policy TINYINT UNSIGNED,
  IN p_dispatched TINYINT UNSIGNED, IN p_retention BIGINT, IN p_tombstone BIGINT, IN p_provider LONGBLOB,
  IN p_sealed_key LONGBLOB, IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
INSERT INTO idem_slots SET
  id = p_id, state = 2, due_at = IF(p_dispatched AND p_policy <> 1, 9223372036854775807, p_at + p_lease),
  scope = p_scope, operation = p_operation, generation = p_generation, fingerprint = p_fingerprint, fence = p_fence,
  token = p_token, owner = p_owner, locked_until = p_at + p_lease, dispatched = p_dispatched, lease_policy = p_policy,
  retention = p_retention, tombstone = p_tombstone, charged = 0, recovery_point = '', release_basis = 0,
  last_error_code = '', reconcile_after = NULL, reconcile_attempts = 0, upstream_reference = '',
  provider = p_provider, sealed_key = p_sealed_key, contested = 0, created_at = p_at, changed_at = p_at,
  completed_at = NULL, expires_at = NULL, tombstone_until = NULL, has_request = 0, answer_status = NULL,
  body_kept = NULL,
  record_sum = CRC32(CONCAT_WS(
      '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
      HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
      release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
      HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
      COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
      COALESCE(answer_status, ''), COALESCE(body_kept, '')))
ON DUPLICATE KEY UPDATE id = p_id;

CREATE OR REPLACE PROCEDURE idem_refuse_generation()
SQL SECURITY DEFINER NO SQL
SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31003,
  MESSAGE_TEXT = 'IDM03 reserve: the store is of another generation; reserve again';

-- The row of idem_reserve_step() for a record that another transaction has.
CREATE OR REPLACE PROCEDURE idem_answer_held(IN p_id BINARY(16), IN p_lease BIGINT, IN p_at BIGINT)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
  -- Where the server has rolled the whole transaction back, the caller must not go on in it.
  IF @@GLOBAL.innodb_rollback_on_timeout THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004,
      MESSAGE_TEXT = 'IDM04 reserve: another transaction has the record';
  END IF;
  SELECT 'in_progress' AS outcome, LOWER(HEX(p_id)) AS operation, COALESCE(MAX(fence), 0) AS fence, NULL AS attempt,
      '' AS recovery_point, 1 AS again, 'in_progress' AS state,
      GREATEST(COALESCE(MAX(locked_until), p_at + p_lease), p_at + 1) AS locked_until,
      GREATEST(COALESCE(MAX(locked_until), p_at + p_lease), p_at + 1) - p_at AS lease_remaining, 0 AS is_other,
      NULL AS since, NULL AS reconcile_in, NULL AS completed_at, NULL AS expires_at, NULL AS expires_in,
      NULL AS response_status, NULL AS response_headers, NULL AS response_head, NULL AS response_body,
      0 AS ended_lease, 0 AS is_stored, p_at AS now
    FROM idem_slots WHERE id = p_id;
END;

-- Ends a lease that is over, or a stored request past its expiry, as the sweeper does.
CREATE OR REPLACE PROCEDURE idem_end_by_time(IN p_id BINARY(16), IN p_ended_lease TINYINT UNSIGNED,
  IN p_state TINYINT UNSIGNED, IN p_dispatched TINYINT UNSIGNED, IN p_policy TINYINT UNSIGNED,
  IN p_expires_at BIGINT, IN p_at BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  IF p_ended_lease AND NOT p_dispatched THEN
    -- Nothing was sent, and after its lease an owner may not send: that is proof (§3, §11).
    CALL idem_release_attempt(p_id, 1, 'lease_expired', p_at);
  ELSEIF p_ended_lease AND p_policy = 1 THEN
    CALL idem_turn_unknown(p_id, 'lease_expired', NULL, '', p_at);
  ELSEIF p_state = 1 AND p_at >= p_expires_at THEN
    CALL idem_time_out(p_id, p_at);
  END IF;
END;

-- One reserve. `p_generation`: the caller's; NULL: the store's own. `p_offered`: fingerprints, the first is the new
-- record's. The result is one row. `outcome`: execute, replay, in_progress, key_misuse, unknown, pending, expired,
-- damaged; `again`: of execute, there was an attempt before; of in_progress, another transaction has the record, so
-- that its state is not known.
CREATE OR REPLACE PROCEDURE idem_reserve_step(IN p_id BINARY(16), IN p_generation BIGINT UNSIGNED,
  IN p_scope LONGBLOB, IN p_operation LONGBLOB, IN p_offered LONGBLOB, IN p_token BINARY(16),
  IN p_owner LONGBLOB, IN p_lease BIGINT, IN p_policy TINYINT UNSIGNED, IN p_dispatched TINYINT UNSIGNED,
  IN p_retention BIGINT, IN p_tombstone BIGINT, IN p_provider LONGBLOB, IN p_sealed_key LONGBLOB,
  IN p_is_face TINYINT UNSIGNED)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_is_sound, v_state, v_dispatched, v_policy, v_has_request, v_is_held TINYINT UNSIGNED;
  DECLARE v_again, v_ended_lease, v_is_other TINYINT UNSIGNED DEFAULT 0;
  DECLARE v_fence, v_next, v_generation, v_charged BIGINT UNSIGNED;
  DECLARE v_token BINARY(16); DECLARE v_scope LONGBLOB; DECLARE v_fingerprint VARBINARY(36);
  DECLARE v_at, v_locked_until, v_gone_at, v_expires_at BIGINT;
  DECLARE v_outcome VARCHAR(16) CHARACTER SET ascii;
  SELECT generation INTO v_generation FROM idem_identity WHERE one = 1 LOCK IN SHARE MODE;
  IF p_generation IS NOT NULL AND p_generation <> v_generation THEN
    CALL idem_refuse_generation();
  END IF; SET v_at = idem_now();
  -- Fences come from the clock, in microseconds, and are above each one that this key can have had.
  SELECT GREATEST(v_at * 1000, highest + 1) INTO v_next FROM idem_fence WHERE one = 1;
  look: LOOP
    BEGIN DECLARE EXIT HANDLER FOR 1205 SET v_is_held = 1;
      CALL idem_insert_new(p_id, v_generation, p_scope, p_operation, LEFT(p_offered, 36), v_next, p_token, p_owner,
        p_lease, p_policy, p_dispatched, p_retention, p_tombstone, p_provider, p_sealed_key, v_at);
    END; IF v_is_held THEN LEAVE look; END IF;
    SELECT state, fence, token, scope, fingerprint, locked_until, dispatched, lease_policy, charged, has_request,
        expires_at, CASE state WHEN 4 THEN expires_at WHEN 3 THEN tombstone_until WHEN 6 THEN tombstone_until END,
        record_sum = CRC32(CONCAT_WS(
        '|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation, HEX(fingerprint), fence, HEX(token),
        HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone, charged, HEX(recovery_point),
        release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''), reconcile_attempts,
        HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
        COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
        COALESCE(answer_status, ''), COALESCE(body_kept, '')))
      INTO v_state, v_fence, v_token, v_scope, v_fingerprint, v_locked_until, v_dispatched, v_policy, v_charged,
        v_has_request, v_expires_at, v_gone_at, v_is_sound
      FROM idem_slots WHERE id = p_id FOR UPDATE;
    -- Of a new record the moment is that of its making.
    IF v_fence <> v_next THEN SET v_at = idem_now(); END IF;
    IF NOT v_is_sound OR v_at < v_gone_at OR v_gone_at IS NULL THEN LEAVE look; END IF;
    DELETE FROM idem_slots WHERE id = p_id;  -- It counts as no record; a new one has a higher fence.
    CALL idem_add_usage(v_scope, IF(v_charged <> 0 AND v_state <> 6, -1, 0), -CAST(v_charged AS SIGNED));
    SET v_next = GREATEST(v_next, v_fence + 1);
  END LOOP;
  IF v_is_held THEN
    CALL idem_answer_held(p_id, p_lease, v_at);
  ELSE
    IF NOT v_is_sound THEN
      SET v_outcome = 'damaged';
    ELSEIF LEFT(p_offered, 36) <> v_fingerprint AND NOT idem_matches(p_offered, v_fingerprint) THEN
      SET v_outcome = 'key_misuse', v_is_other = idem_prove_two_requests(LEFT(p_offered, 36), v_fingerprint);
    ELSE
      -- Ends what its time has ended, as the sweeper does.
      SET v_ended_lease = v_state = 2 AND v_at >= v_locked_until;
      CALL idem_end_by_time(p_id, v_ended_lease, v_state, v_dispatched, v_policy, v_expires_at, v_at);
      IF v_ended_lease OR v_state = 1 THEN
        SELECT state INTO v_state FROM idem_slots WHERE id = p_id FOR UPDATE;
      END IF;
      IF v_state = 2 AND NOT v_ended_lease THEN
        -- Only the token proves that the caller has the reservation (§4). It has that of a new record.
        SET v_outcome = IF(v_token = p_token AND p_token <> REPEAT(X'00', 16), 'execute', 'in_progress');
      ELSEIF v_state IN (2, 4) THEN
        SET v_outcome = 'execute', v_again = 1, v_next = GREATEST(v_next, v_fence + 1);
        CALL idem_begin_again(p_id, v_next, p_token, p_owner, p_lease, p_policy, p_dispatched, p_retention,
          p_tombstone, p_provider, p_sealed_key, v_at);
      END IF;
      IF v_ended_lease THEN CALL idem_note_ended_lease(p_id, v_fence, v_at); END IF;
    END IF;
    CALL idem_answer_reserve(p_id, v_outcome, v_again, v_is_other, v_ended_lease, p_is_face, v_at);
  END IF;
END;

-- The row of idem_reserve_step() for the record as it is now. `p_outcome`: NULL where the record's state decides.
CREATE OR REPLACE PROCEDURE idem_answer_reserve(IN p_id BINARY(16), IN p_outcome VARCHAR(16) CHARACTER SET ascii,
  IN p_again TINYINT UNSIGNED, IN p_is_other TINYINT UNSIGNED, IN p_ended_lease TINYINT UNSIGNED,
  IN p_is_face TINYINT UNSIGNED, IN p_at BIGINT)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
  DECLARE v_head, v_body LONGBLOB;
  DECLARE v_state, v_is_answered TINYINT UNSIGNED;
  DECLARE v_is_damaged TINYINT UNSIGNED DEFAULT 0;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  SELECT IF(state = 3 AND p_at >= expires_at, 6, state) INTO v_state FROM idem_slots WHERE id = p_id FOR UPDATE;
  IF v_state = 3 AND NOT (p_outcome <=> 'damaged') THEN
    SELECT answer_head, answer_body, NOT (answer_sum <=> idem_answer_sum(p_id, answer_head, answer_body)
        AND answer_status <=> idem_number_at(answer_head, 2, 2) AND body_kept <=> ORD(SUBSTR(answer_head, 4, 1)))
      INTO v_head, v_body, v_is_damaged FROM idem_slots WHERE id = p_id FOR UPDATE;
    -- If the fingerprint differs by damage, this may be the first request's own retry.
    IF v_is_damaged THEN SET p_outcome = 'damaged'; END IF;
  END IF;
  SET v_is_answered = v_state = 3 AND p_outcome IS NULL;
  IF v_is_answered AND p_is_face AND idem_is_sealed(v_head) THEN
    SET v_message = CONCAT('IDM10 reserve: the stored answer of ', LOWER(HEX(p_id)), ' is encrypted; the work ran');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31010, MESSAGE_TEXT = v_message;
  END IF;
  SET p_outcome = COALESCE(p_outcome, ELT(v_state, 'pending', NULL, 'replay', NULL, 'unknown', 'expired'));
  SELECT p_outcome AS outcome, LOWER(HEX(p_id)) AS operation, fence,
      IF(p_outcome = 'execute', LOWER(HEX(token)), NULL) AS attempt,
      IF(p_outcome = 'execute', recovery_point, '') AS recovery_point, p_again AS again,
      idem_state_name(v_state) AS state,
      locked_until, IF(p_outcome = 'in_progress', GREATEST(1, locked_until - p_at), NULL) AS lease_remaining,
      p_is_other AS is_other, changed_at AS since,
      IF(p_outcome = 'unknown', GREATEST(0, reconcile_after - p_at), NULL) AS reconcile_in,
      COALESCE(completed_at, changed_at) AS completed_at, expires_at, expires_at - p_at AS expires_in,
      IF(v_is_answered, answer_status, NULL) AS response_status,
      IF(v_is_answered AND p_is_face, idem_headers(v_head), NULL) AS response_headers,
      IF(v_is_answered, v_head, NULL) AS response_head, IF(v_is_answered, v_body, NULL) AS response_body,
      p_ended_lease AS ended_lease, has_request AS is_stored, p_at AS now
    FROM idem_slots WHERE id = p_id FOR UPDATE;
END;

SET NAMES binary;
