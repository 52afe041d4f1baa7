-- The SQL face (protocol.md §17): a service calls it in its own transaction, from any language. Behind a gateway,
-- operation, fence and attempt come from the request's fields Idem-Operation, Idem-Fence and Idem-Attempt.
--
-- A call that would do nothing raises, with SQLSTATE 45000, the number below, and a message that begins with the name.
-- MariaDB and MySQL let a transaction go on after an error. So each error of this face rolls the caller's transaction
-- back, as a deadlock does: a late attempt books nothing, also where its service does not look at the error. The
-- procedures named idem_try_... return a verdict instead, and leave the transaction to the caller.
--
--   31001  IDM01  stale: the attempt is not the record's current one
--   31002  IDM02  settled: this attempt has ended before, and its first ending is kept
--   31003  IDM03  the store's identity is of another generation
--   31004  IDM04  held: another transaction has the record; try again
--   31005  IDM05  an argument is wrong, or no transaction is open
--   31008  IDM08  the record is damaged
--   31010  IDM10  the stored answer is encrypted
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

-- At the begin of each call. Refuses a call outside of a transaction, whose statements would commit one by one: there a
-- savepoint is gone at once. A caller's temporary tables must not stand for the store's. No call waits longer than a
-- second for a record; p_wait is the session's own limit, which the caller sets again.
CREATE OR REPLACE PROCEDURE idem_enter(OUT p_wait INT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE EXIT HANDLER FOR 1305
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005, MESSAGE_TEXT = 'IDM05 no transaction is open: START TRANSACTION';
  SAVEPOINT idem_is_open;
  RELEASE SAVEPOINT idem_is_open;
  DROP TEMPORARY TABLE IF EXISTS idem_slots, idem_waiting, idem_evidence, idem_identity, idem_fence, idem_usage,
    idem_outbox, idem_outbox_locks;
  SET p_wait = @@SESSION.innodb_lock_wait_timeout;
  SET SESSION innodb_lock_wait_timeout = 1;
END;

CREATE OR REPLACE PROCEDURE idem_refuse_argument(IN p_what VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY DEFINER NO SQL
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT LEFT(CONCAT('IDM05 ', p_what), 128);
  SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005, MESSAGE_TEXT = v_message;
END;

-- Raises the error of a verdict other than done.
CREATE OR REPLACE PROCEDURE idem_must(IN p_verb VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_id BINARY(16), IN p_verdict VARCHAR(8) CHARACTER SET ascii, IN p_state TINYINT UNSIGNED)
SQL SECURITY DEFINER NO SQL
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT CONCAT(p_verb,
    CASE p_verdict WHEN 'stale' THEN ': not the current attempt of '
                   WHEN 'settled' THEN ': this attempt has ended before, of '
                   ELSE ': damaged is the record ' END,
    LOWER(HEX(p_id)), ', which is ', COALESCE(idem_state_name(p_state), 'gone'));
  IF p_verdict = 'stale' THEN
    SET v_message = CONCAT('IDM01 ', v_message);
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31001, MESSAGE_TEXT = v_message;
  ELSEIF p_verdict = 'settled' THEN
    SET v_message = CONCAT('IDM02 ', v_message);
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31002, MESSAGE_TEXT = v_message;
  ELSEIF p_verdict = 'damaged' THEN
    SET v_message = CONCAT('IDM08 ', p_verb, ': the record of ', LOWER(HEX(p_id)), ' is damaged');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31008, MESSAGE_TEXT = v_message;
  END IF;
END;

CREATE OR REPLACE FUNCTION idem_is_length(p_ms BIGINT, p_least BIGINT) RETURNS TINYINT
DETERMINISTIC NO SQL
RETURN COALESCE(p_ms BETWEEN p_least AND 3153600000000, 0);

-- Each verb of an owner, with its checks. p_basis: 1 proven, 2 declared. p_must: 1, a late attempt raises.
CREATE OR REPLACE PROCEDURE idem_owner(IN p_must TINYINT,
  IN p_verb VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_operation VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN p_fence BIGINT UNSIGNED,
  IN p_attempt VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN p_lease BIGINT,
  IN p_point LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN p_status INT,
  IN p_headers LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN p_body LONGBLOB,
  IN p_reference LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN p_basis TINYINT UNSIGNED,
  IN p_error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN p_reconcile_in BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_id, v_token BINARY(16);
  DECLARE v_head LONGBLOB;
  DECLARE v_wait INT;
  DECLARE v_verdict VARCHAR(8) CHARACTER SET ascii;
  DECLARE v_state, v_contested TINYINT UNSIGNED;
  DECLARE v_expires_at BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK;
    IF v_wait IS NOT NULL THEN SET SESSION innodb_lock_wait_timeout = v_wait; END IF;
    RESIGNAL;
  END;
  DECLARE EXIT HANDLER FOR 1205
  BEGIN
    ROLLBACK;
    SET SESSION innodb_lock_wait_timeout = v_wait;
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004,
      MESSAGE_TEXT = 'IDM04 another transaction has the record; try again';
  END;
  CALL idem_enter(v_wait);
  SET v_id = idem_bytes_of('operation', p_operation), v_token = idem_bytes_of('attempt', p_attempt);
  IF p_fence IS NULL OR v_token = REPEAT(X'00', 16) THEN
    CALL idem_refuse_argument('the fence is null, or the attempt is all zeros, which is the token of none');
  END IF;
  IF p_verb = 'complete' THEN
    SET v_head = idem_answer_head(p_status, p_headers);
    IF p_body IS NULL OR LENGTH(p_body) > 1048576 OR p_status IN (204, 205, 304) AND p_body <> '' THEN
      CALL idem_refuse_argument('complete: a body is not null, has 1 MiB at most, and is empty with 204, 205 and 304');
    END IF;
  END IF;
  IF p_point IS NULL OR p_reference IS NULL OR p_error IS NULL
     OR GREATEST(LENGTH(p_point), LENGTH(p_reference), LENGTH(p_error)) > 8192 THEN
    CALL idem_refuse_argument('recovery_point, reference and error_code have 8192 bytes at most; none is null');
  END IF;
  IF NOT idem_is_length(p_lease, 1) OR NOT idem_is_length(COALESCE(p_reconcile_in, 0), 0)
     OR NOT COALESCE(p_basis IN (1, 2), 0) THEN
    CALL idem_refuse_argument('a length of time is milliseconds, 100 years at most; a basis is proven or declared');
  END IF;
  -- The operation may run again, and would send the message a second time.
  IF p_verb IN ('release', 'mark_unknown') AND idem_has_enqueued(v_id) THEN
    CALL idem_refuse_if_enqueued();
  END IF;
  CALL idem_owner_step(p_verb, v_id, p_fence, v_token, p_lease, p_point, v_head, p_body, p_reference, p_basis,
    p_error, p_reconcile_in, v_verdict, v_state, v_expires_at, v_contested);
  IF p_must OR v_verdict = 'damaged' THEN CALL idem_must(p_verb, v_id, v_verdict, v_state); END IF;
  SET SESSION innodb_lock_wait_timeout = v_wait;
  IF NOT p_must THEN
    SELECT v_verdict AS verdict, idem_state_name(v_state) AS state, v_expires_at AS expires_at;
  END IF;
END;

-- True if this session has enqueued a message of the record; with the savepoint of idem_enqueue(), in this transaction.
CREATE OR REPLACE FUNCTION idem_has_enqueued(p_id BINARY(16)) RETURNS TINYINT
NOT DETERMINISTIC NO SQL
RETURN LOCATE(HEX(p_id), COALESCE(@idem_enqueued, '')) > 0;

CREATE OR REPLACE PROCEDURE idem_refuse_if_enqueued()
SQL SECURITY DEFINER NO SQL
BEGIN
  DECLARE EXIT HANDLER FOR 1305 SET @idem_enqueued = NULL;
  RELEASE SAVEPOINT idem_enqueued;
  CALL idem_refuse_argument('this transaction sends a message of the operation: roll back, then end the attempt');
END;

SET NAMES binary;
