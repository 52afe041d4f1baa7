-- Keys, records and messages of the SQL face.
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

-- The record's handle, as the gateway makes it (protocol.md §2).
CREATE OR REPLACE FUNCTION idem_record_id(scope LONGTEXT CHARACTER SET utf8mb4,
  operation LONGTEXT CHARACTER SET utf8mb4,
  `key` LONGTEXT CHARACTER SET utf8mb4) RETURNS CHAR(32) CHARACTER SET ascii
SQL SECURITY DEFINER NOT DETERMINISTIC READS SQL DATA
BEGIN
  DECLARE v_secret BINARY(32);
  DECLARE v_by_operation, v_is_own TINYINT UNSIGNED;
  IF scope IS NULL OR operation IS NULL OR `key` IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005, MESSAGE_TEXT = 'IDM05 record_id: no argument may be null';
  END IF;
  SELECT i.own_secret, i.by_operation, i.is_own INTO v_secret, v_by_operation, v_is_own
    FROM idem_identity i WHERE i.one = 1;
  IF v_by_operation = 2 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
      MESSAGE_TEXT = 'IDM05 this store is an unfinished copy, or its copy has taken its place (idem store copy)';
  END IF;
  IF NOT COALESCE(v_is_own, 0) THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
      MESSAGE_TEXT = 'IDM05 the gateways name records by a secret that is not in this store: use Idem-Operation';
  END IF;
  RETURN LOWER(CONVERT(HEX(LEFT(idem_keyed_digest(idem_keyed_digest(v_secret, 'idem record id'),
    CONCAT(REVERSE(UNHEX(LPAD(HEX(LENGTH(scope)), 16, '0'))), scope,
           REVERSE(UNHEX(LPAD(HEX(IF(v_by_operation, LENGTH(operation), 0)), 16, '0'))),
           IF(v_by_operation, operation, ''),
           REVERSE(UNHEX(LPAD(HEX(LENGTH(`key`)), 16, '0'))), `key`)), 16)) USING ascii));
END;

-- Of a new attempt: nobody can guess it, because the store's secret is in it, and a UUID is not repeated.
CREATE OR REPLACE FUNCTION idem_new_token() RETURNS BINARY(16)
SQL SECURITY DEFINER NOT DETERMINISTIC READS SQL DATA
RETURN (SELECT UNHEX(LEFT(SHA2(CONCAT(own_secret, UUID(), RAND()), 256), 32)) FROM idem_identity WHERE one = 1);

-- Wins the right to execute, or returns the state of the attempt that has or had it, as one row. `request`
-- distinguishes a retry from another request under the same key: the request's bytes, or a digest of them. Committed
-- before the work starts, the reservation is durable whatever the work does; in the work's transaction, both commit
-- together. `lease_policy`: 'unknown', 'resume' or 'rerun'. `attempt`: NULL for one that the server chooses.
CREATE OR REPLACE PROCEDURE idem_reserve_with(IN scope LONGTEXT CHARACTER SET utf8mb4,
  IN operation LONGTEXT CHARACTER SET utf8mb4, IN `key` LONGTEXT CHARACTER SET utf8mb4, IN request LONGBLOB,
  IN lease BIGINT, IN retention BIGINT, IN tombstone BIGINT, IN lease_policy VARCHAR(255) CHARACTER SET utf8mb4,
  IN dispatched TINYINT, IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN owner LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_id, v_token BINARY(16);
  DECLARE v_wait INT;
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
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004, MESSAGE_TEXT = 'IDM04 the store changes its identity; try again';
  END;
  CALL idem_enter(v_wait);
  IF scope IS NULL OR operation IS NULL OR `key` IS NULL OR request IS NULL OR owner IS NULL OR dispatched IS NULL
     OR LENGTH(scope) NOT BETWEEN 1 AND 255 OR LENGTH(operation) NOT BETWEEN 1 AND 255
     OR LENGTH(`key`) NOT BETWEEN 1 AND 255 OR LENGTH(owner) > 255 THEN
    CALL idem_refuse_argument('reserve: scope, operation and key have 1 to 255 bytes, an owner 255; none is null');
  END IF;
  IF NOT idem_is_length(lease, 1) OR NOT idem_is_length(retention, 1) OR NOT idem_is_length(tombstone, 0)
     OR NOT COALESCE(FIELD(lease_policy, 'unknown', 'resume', 'rerun'), 0) THEN
    CALL idem_refuse_argument('reserve: times are ms; lease, retention are positive; policy: unknown, resume, rerun');
  END IF;
  SET v_token = IF(attempt IS NULL, idem_new_token(), idem_bytes_of('attempt', attempt));
  IF v_token = REPEAT(X'00', 16) THEN
    CALL idem_refuse_argument('attempt: all zeros is the token of no attempt');
  END IF;
  -- A key may have a record under each of the names, and only a gateway knows all of them.
  IF (SELECT i.by_operation AND LOCATE(CONCAT('\n', operation, '\n'), i.former_names) > 0
        FROM idem_identity i WHERE i.one = 1 LOCK IN SHARE MODE) THEN
    CALL idem_refuse_argument('reserve: the operation has, or is, a former name: reserve its keys through a gateway');
  END IF;
  -- Also where the transaction reads as of an earlier moment.
  IF (SELECT i.by_operation = 2 FROM idem_identity i WHERE i.one = 1 LOCK IN SHARE MODE) THEN
    CALL idem_refuse_argument('reserve: this store is an unfinished copy, or its copy has taken its place');
  END IF;
  SET v_id = UNHEX(idem_record_id(scope, operation, `key`));
  CALL idem_reserve_step(v_id, NULL, scope, operation,
    CONCAT(X'00000000', UNHEX(SHA2(CONCAT(idem_length_framed(operation), request), 256))), v_token, owner, lease,
    FIELD(lease_policy, 'unknown', 'resume', 'rerun'), dispatched <> 0, retention, tombstone, '', '', 1);
  SET SESSION innodb_lock_wait_timeout = v_wait;
END;

-- The same with a lease of 60 s, a retention of 24 hours and a tombstone of 30 days.
CREATE OR REPLACE PROCEDURE idem_reserve(IN scope LONGTEXT CHARACTER SET utf8mb4,
  IN operation LONGTEXT CHARACTER SET utf8mb4, IN `key` LONGTEXT CHARACTER SET utf8mb4, IN request LONGBLOB)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_reserve_with(scope, operation, `key`, request, 60000, 86400000, 2592000000, 'unknown', 1, NULL, '');

-- The record as it reads now, with its stored answer, as one row; none: there is no record. In any session, also
-- outside of a transaction: it reads alone.
CREATE OR REPLACE PROCEDURE idem_find(IN operation VARCHAR(255) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
  DECLARE v_id BINARY(16) DEFAULT idem_bytes_of('find', operation);
  DECLARE v_at BIGINT DEFAULT idem_now();
  DECLARE v_is_sound, v_is_sealed TINYINT UNSIGNED;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  SELECT record_sum = CRC32(CONCAT_WS(
      '|', HEX(s.id), s.state, s.due_at, HEX(s.scope), HEX(s.operation), s.generation, HEX(s.fingerprint), s.fence,
      HEX(s.token), HEX(s.owner), s.locked_until, s.dispatched, s.lease_policy, s.retention, s.tombstone, s.charged,
      HEX(s.recovery_point), s.release_basis, HEX(s.last_error_code), COALESCE(s.reconcile_after, ''),
      s.reconcile_attempts, HEX(s.upstream_reference), HEX(s.provider), HEX(s.sealed_key), s.contested,
      s.created_at, s.changed_at, COALESCE(s.completed_at, ''), COALESCE(s.expires_at, ''),
      COALESCE(s.tombstone_until, ''), s.has_request, COALESCE(s.answer_status, ''), COALESCE(s.body_kept, '')))
      AND (answer_head IS NULL OR answer_sum <=> idem_answer_sum(v_id, answer_head, answer_body))
      AND (state = 3) = (answer_head IS NOT NULL), idem_is_sealed(answer_head) AND v_at < expires_at
    INTO v_is_sound, v_is_sealed FROM idem_slots s WHERE s.id = v_id;
  IF NOT v_is_sound THEN CALL idem_must('find', v_id, 'damaged', NULL); END IF;
  IF v_is_sealed THEN
    SET v_message = CONCAT('IDM10 find: the stored answer of ', LOWER(HEX(v_id)), ' is encrypted; the work ran');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31010, MESSAGE_TEXT = v_message;
  END IF;
  SELECT idem_state_name(IF(s.state = 3 AND v_at >= s.expires_at, 6, s.state)) AS state, s.fence, s.recovery_point,
      s.locked_until, s.created_at, IF(s.state = 3 AND v_at >= s.expires_at, s.expires_at, s.changed_at) AS changed_at,
      s.expires_at, s.last_error_code, s.upstream_reference,
      IF(v_at < s.expires_at, s.answer_status, NULL) AS response_status,
      IF(v_at < s.expires_at, idem_headers(s.answer_head), NULL) AS response_headers,
      IF(v_at < s.expires_at, s.answer_body, NULL) AS response_body
    FROM idem_slots s
    WHERE s.id = v_id AND COALESCE(v_at < CASE s.state WHEN 4 THEN s.expires_at WHEN 3 THEN s.tombstone_until
                                                       WHEN 6 THEN s.tombstone_until END, 1);
END;

CREATE OR REPLACE PROCEDURE idem_send(IN p_must TINYINT, IN p_operation VARCHAR(255) CHARACTER SET utf8mb4,
  IN p_fence BIGINT UNSIGNED, IN p_attempt VARCHAR(255) CHARACTER SET utf8mb4,
  IN p_destination LONGTEXT CHARACTER SET utf8mb4, IN p_type LONGTEXT CHARACTER SET utf8mb4,
  IN p_payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_aggregatetype LONGTEXT CHARACTER SET utf8mb4, IN p_aggregateid LONGTEXT CHARACTER SET utf8mb4,
  IN p_content_type LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_id, v_token, v_message BINARY(16);
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
      MESSAGE_TEXT = 'IDM04 another transaction has the record or the aggregate; try again';
  END;
  CALL idem_enter(v_wait);
  SET v_id = idem_bytes_of('operation', p_operation), v_token = idem_bytes_of('attempt', p_attempt);
  IF p_fence IS NULL OR v_token = REPEAT(X'00', 16) OR p_payload IS NULL OR LENGTH(p_payload) > 1048576
     OR NOT COALESCE(LENGTH(p_destination) BETWEEN 1 AND 255 AND LENGTH(p_type) BETWEEN 1 AND 255
          AND LENGTH(p_aggregatetype) <= 255 AND LENGTH(p_aggregateid) <= 255 AND LENGTH(p_content_type) <= 255, 0) THEN
    CALL idem_refuse_argument('enqueue: no argument is null; names have 255 bytes at most, a payload 1 MiB');
  END IF;
  CALL idem_owner_step('enqueue', v_id, p_fence, v_token, 1, '', NULL, NULL, '', 1, '', NULL, v_verdict, v_state,
    v_expires_at, v_contested);
  IF p_must OR v_verdict = 'damaged' THEN CALL idem_must('enqueue', v_id, v_verdict, v_state); END IF;
  IF v_verdict = 'done' THEN
    SET v_message = UNHEX(LEFT(SHA2(CONCAT(UUID(), RAND(), v_id), 256), 32));
    CALL idem_put_message(v_message, v_id, p_destination, p_aggregatetype, p_aggregateid, p_type, p_payload,
      p_content_type);
    CALL idem_note_enqueued(v_id);
  END IF;
  SET SESSION innodb_lock_wait_timeout = v_wait;
  SELECT LOWER(HEX(v_message)) AS id;
END;

-- A savepoint ends with its transaction, and a variable does not: together they are a variable of the transaction.
CREATE OR REPLACE PROCEDURE idem_note_enqueued(IN p_id BINARY(16))
SQL SECURITY DEFINER NO SQL
BEGIN
  BEGIN
    DECLARE CONTINUE HANDLER FOR 1305 SET @idem_enqueued = '';
    RELEASE SAVEPOINT idem_enqueued;
  END;
  SAVEPOINT idem_enqueued;
  SET @idem_enqueued = CONCAT(COALESCE(@idem_enqueued, ''), ' ', HEX(p_id));
END;

-- Sends `payload` to `destination` if and only if the caller's transaction commits; returns a row with the message's
-- id. To be called before idem_complete().
CREATE OR REPLACE PROCEDURE idem_enqueue(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN destination LONGTEXT CHARACTER SET utf8mb4,
  IN type LONGTEXT CHARACTER SET utf8mb4, IN payload LONGTEXT CHARACTER SET utf8mb4,
  IN aggregatetype LONGTEXT CHARACTER SET utf8mb4, IN aggregateid LONGTEXT CHARACTER SET utf8mb4,
  IN content_type LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_send(1, operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid, content_type);

-- The same, but the id is NULL where the attempt is not the current one: nothing is sent, and the caller rolls back.
CREATE OR REPLACE PROCEDURE idem_try_enqueue(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN destination LONGTEXT CHARACTER SET utf8mb4,
  IN type LONGTEXT CHARACTER SET utf8mb4, IN payload LONGTEXT CHARACTER SET utf8mb4,
  IN aggregatetype LONGTEXT CHARACTER SET utf8mb4, IN aggregateid LONGTEXT CHARACTER SET utf8mb4,
  IN content_type LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_send(0, operation, fence, attempt, destination, type, payload, aggregatetype, aggregateid, content_type);

SET NAMES binary;
