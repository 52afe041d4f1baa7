-- Messages of services (protocol.md §18). The business transaction writes the row, so it is there if and only if the
-- business rows are. The relay's own statements are in src/store/mysql/internal_statements.cpp.
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

-- The row gets its number under the aggregate's lock, which ends after the row becomes visible. So of two messages of
-- one aggregate, the one with the lower number is visible first.
CREATE OR REPLACE PROCEDURE idem_put_message(IN p_message BINARY(16), IN p_operation BINARY(16),
  IN p_destination VARBINARY(255), IN p_aggregatetype VARBINARY(255), IN p_aggregateid VARBINARY(255),
  IN p_type VARBINARY(255), IN p_payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_content_type VARBINARY(255))
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
  DECLARE v_at BIGINT;
  DECLARE v_slot SMALLINT UNSIGNED;
  IF p_aggregateid <> '' THEN
    SELECT slot INTO v_slot FROM idem_outbox_locks
      WHERE slot = CRC32(CONCAT(p_destination, '\n', p_aggregatetype, '\n', p_aggregateid)) & 4095 FOR UPDATE;
  END IF;
  SET v_at = idem_now();
  INSERT INTO idem_outbox (id, aggregatetype, aggregateid, type, payload, content_type, destination, operation,
                           created_at, due_at, last_error, history)
    VALUES (p_message, p_aggregatetype, p_aggregateid, p_type, p_payload, p_content_type, p_destination, p_operation,
            v_at, v_at, '', '[]');
END;

SET NAMES binary;
