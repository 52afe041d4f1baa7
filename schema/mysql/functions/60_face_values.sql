-- Values of the SQL face (protocol.md §17): numbers and answers as bytes, names of records.
--
-- Literals and texts of these routines are UTF-8, whatever the session that creates them uses: a routine keeps the
-- character set and the sql_mode of its creation, so that no caller's session changes what it does.
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

CREATE OR REPLACE FUNCTION idem_le(p_value BIGINT UNSIGNED, p_bytes TINYINT UNSIGNED) RETURNS VARBINARY(8)
DETERMINISTIC NO SQL
RETURN REVERSE(UNHEX(LPAD(HEX(p_value), 2 * p_bytes, '0')));

-- The number that p_bytes bytes at p_at write, little-endian.
CREATE OR REPLACE FUNCTION idem_number_at(p_bytes LONGBLOB, p_at INT, p_size TINYINT) RETURNS BIGINT UNSIGNED
DETERMINISTIC NO SQL
RETURN CAST(CONV(HEX(REVERSE(SUBSTR(p_bytes, p_at, p_size))), 16, 10) AS UNSIGNED);

CREATE OR REPLACE FUNCTION idem_framed(p_part LONGBLOB) RETURNS LONGBLOB
DETERMINISTIC NO SQL
RETURN CONCAT(idem_le(LENGTH(p_part), 4), p_part);

CREATE OR REPLACE FUNCTION idem_length_framed(p_part LONGBLOB) RETURNS LONGBLOB
DETERMINISTIC NO SQL
RETURN CONCAT(idem_le(LENGTH(p_part), 8), p_part);

-- HMAC-SHA-256 (RFC 2104) under a key of 32 bytes, which is XORed in numbers of 64 bits: MariaDB has no operators on
-- bytes.
CREATE OR REPLACE FUNCTION idem_keyed_digest(p_key BINARY(32), p_message LONGBLOB) RETURNS BINARY(32)
DETERMINISTIC NO SQL
BEGIN
  DECLARE v_outer, v_inner BIGINT UNSIGNED;
  SET v_outer = 0x5c5c5c5c5c5c5c5c, v_inner = 0x3636363636363636;
  RETURN UNHEX(SHA2(CONCAT(
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 1, 8)), 16, 10) AS UNSIGNED) ^ v_outer), 16, '0')),
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 9, 8)), 16, 10) AS UNSIGNED) ^ v_outer), 16, '0')),
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 17, 8)), 16, 10) AS UNSIGNED) ^ v_outer), 16, '0')),
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 25, 8)), 16, 10) AS UNSIGNED) ^ v_outer), 16, '0')),
    REPEAT(X'5C', 32), UNHEX(SHA2(CONCAT(
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 1, 8)), 16, 10) AS UNSIGNED) ^ v_inner), 16, '0')),
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 9, 8)), 16, 10) AS UNSIGNED) ^ v_inner), 16, '0')),
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 17, 8)), 16, 10) AS UNSIGNED) ^ v_inner), 16, '0')),
    UNHEX(LPAD(HEX(CAST(CONV(HEX(SUBSTR(p_key, 25, 8)), 16, 10) AS UNSIGNED) ^ v_inner), 16, '0')),
    REPEAT(X'36', 32), p_message), 256))), 256));
END;

-- The head of an answer: version, status, whether the body was kept, then the framed fields. `headers`: an array of
-- pairs, [["Content-Type", "application/json"], ...]. Fields that are never stored are left out, as the gateway does
-- (protocol.md §14, as in src/core/exchange/policy.cpp): those of one connection and those that its Connection fields
-- name, cookies and credentials, and the fields that Idem writes itself. One long function: a call of another one costs
-- more than the statements of this one do for a field.
CREATE OR REPLACE FUNCTION idem_answer_head(p_status INT, p_headers LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS LONGBLOB DETERMINISTIC NO SQL
BEGIN
  DECLARE v_pair, v_fields, v_pairs, v_first INT DEFAULT 0;
  DECLARE v_both, v_name, v_value, v_lower LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT ',';
  DECLARE v_head LONGBLOB;
  IF p_status IS NULL OR p_status NOT BETWEEN 200 AND 599 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005, MESSAGE_TEXT = 'IDM05 complete: write a status from 200 to 599';
  END IF;
  IF p_headers IS NULL OR LENGTH(p_headers) > 262144 OR NOT JSON_VALID(p_headers)
     OR JSON_TYPE(p_headers) <> 'ARRAY' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
      MESSAGE_TEXT = 'IDM05 headers: write [["Content-Type", "application/json"]], and [] for none';
  END IF;
  SET v_head = CONCAT(X'01', REVERSE(UNHEX(LPAD(HEX(p_status), 4, '0'))), X'01'), v_pairs = JSON_LENGTH(p_headers);
  WHILE v_pair < v_pairs DO
    SET v_both = JSON_EXTRACT(p_headers, CONCAT('$[', v_pair, ']'));
    SET v_name = JSON_EXTRACT(v_both, '$[0]'), v_value = JSON_EXTRACT(v_both, '$[1]');
    IF JSON_TYPE(v_both) <> 'ARRAY' OR JSON_LENGTH(v_both) <> 2 OR JSON_TYPE(v_name) <> 'STRING'
       OR JSON_TYPE(v_value) IN ('NULL', 'ARRAY', 'OBJECT') THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
        MESSAGE_TEXT = 'IDM05 headers: one of them is not a pair of a field name and a value';
    END IF;
    SET v_name = JSON_UNQUOTE(v_name), v_value = JSON_UNQUOTE(v_value), v_lower = LOWER(v_name);
    IF CHAR_LENGTH(v_name) NOT BETWEEN 1 AND 255 OR v_name REGEXP '[^!#$%&''*+.^_`|~0-9A-Za-z-]' THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005, MESSAGE_TEXT = 'IDM05 headers: a name is not that of a field';
    END IF;
    IF CAST(v_value AS BINARY) REGEXP '[\\x00-\\x08\\x0a-\\x1f\\x7f]' THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
        MESSAGE_TEXT = 'IDM05 headers: a value has a control character; write it in one line';
    END IF;
    IF v_lower = 'connection' THEN
      -- From the first such field on all of them are known at the second round.
      SET v_first = IF(v_first = 0, 1, v_first),
          v_named = CONCAT(v_named, REPLACE(REPLACE(LOWER(v_value), ' ', ''), '\t', ''), ',');
    ELSEIF v_lower NOT IN ('keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'via',
         'authorization', 'set-cookie', 'set-cookie2', 'www-authenticate', 'authentication-info', 'alt-svc',
         'clear-site-data', 'idempotent-replayed', 'idempotency-outcome', 'idempotency-expires')
       AND LEFT(v_lower, 6) <> 'proxy-' AND LEFT(v_lower, 5) <> 'idem-'
       AND LOCATE(CONCAT(',', v_lower, ','), v_named) = 0 THEN
      -- Blanks around a value are no part of it (RFC 9110 §5.5).
      WHILE LEFT(v_value, 1) IN (' ', '\t') DO SET v_value = SUBSTR(v_value, 2); END WHILE;
      WHILE RIGHT(v_value, 1) IN (' ', '\t') DO SET v_value = LEFT(v_value, CHAR_LENGTH(v_value) - 1); END WHILE;
      SET v_fields = v_fields + 1;
      SET v_head = CONCAT(v_head, REVERSE(UNHEX(LPAD(HEX(LENGTH(v_name)), 8, '0'))), v_name,
                          REVERSE(UNHEX(LPAD(HEX(LENGTH(v_value)), 8, '0'))), v_value);
    END IF;
    SET v_pair = v_pair + 1;
    IF v_pair = v_pairs AND v_first = 1 THEN
      SET v_first = 2, v_pair = 0, v_fields = 0, v_head = LEFT(v_head, 4);
    END IF;
  END WHILE;
  IF v_fields > 100 OR LENGTH(v_head) > 16384 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
      MESSAGE_TEXT = 'IDM05 headers: 100 fields and 16 KiB are stored at most';
  END IF;
  RETURN v_head;
END;

-- The fields of a stored answer, in their order, without what a gateway stores behind them (trace_field and rpc_field of
-- src/core/exchange/answers.hpp). A value that is not UTF-8 reads as Latin-1.
CREATE OR REPLACE FUNCTION idem_headers(p_head LONGBLOB) RETURNS LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
DETERMINISTIC NO SQL
BEGIN
  DECLARE v_at INT DEFAULT 5;
  DECLARE v_is_value TINYINT DEFAULT 0;
  DECLARE v_part LONGBLOB;
  DECLARE v_text LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_out LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '';
  IF p_head IS NULL THEN RETURN NULL; END IF;
  fields: WHILE v_at <= LENGTH(p_head) DO
    SET v_part = SUBSTR(p_head, v_at + 4, idem_number_at(p_head, v_at, 4));
    SET v_at = v_at + 4 + LENGTH(v_part);
    IF NOT v_is_value AND v_part IN ('Idem-Trace', 'Idem-Rpc') THEN LEAVE fields; END IF;
    SET v_text = CONVERT(v_part USING utf8mb4);
    IF v_text IS NULL OR CAST(v_text AS BINARY) <> v_part THEN
      SET v_text = CONVERT(CONVERT(v_part USING latin1) USING utf8mb4);
    END IF;
    SET v_out = CONCAT(v_out, IF(v_is_value, ', ', IF(v_out = '', '[', ', [')), JSON_QUOTE(v_text),
                       IF(v_is_value, ']', ''));
    SET v_is_value = NOT v_is_value;
  END WHILE fields;
  RETURN CONCAT('[', v_out, ']');
END;

-- An encrypted answer or request begins so (docs/encryption.md).
CREATE OR REPLACE FUNCTION idem_is_sealed(p_head LONGBLOB) RETURNS TINYINT
DETERMINISTIC NO SQL
RETURN COALESCE(SUBSTR(p_head, 5, 15) = CONCAT(X'0b000000', 'idem-sealed'), 0);

-- The bytes that 32 hexadecimal digits write, or a UUID; refuses others.
CREATE OR REPLACE FUNCTION idem_bytes_of(p_name VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_text VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin) RETURNS BINARY(16) DETERMINISTIC NO SQL
BEGIN
  DECLARE v_digits VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT REPLACE(p_text, '-', '');
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF v_digits IS NULL OR CHAR_LENGTH(v_digits) <> 32 OR v_digits REGEXP '[^0-9A-Fa-f]' THEN
    SET v_message = CONCAT('IDM05 ', p_name, ': write 32 hexadecimal digits');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005, MESSAGE_TEXT = v_message;
  END IF;
  RETURN UNHEX(v_digits);
END;

SET NAMES binary;
