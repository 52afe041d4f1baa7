-- The store's clock (protocol.md §15), in whole milliseconds and in microseconds since the Unix epoch.
--
-- SYSDATE() and not NOW(): NOW() stands still during a statement, and follows a session's SET timestamp. It is read
-- while the session's zone is UTC: a conversion from another zone has two answers for the hour that the end of summer
-- time repeats. UNIX_TIMESTAMP() would end in 2038 on MariaDB.
CREATE OR REPLACE FUNCTION idem_micros() RETURNS BIGINT
NOT DETERMINISTIC NO SQL
BEGIN
  DECLARE zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE at BIGINT;
  SET SESSION time_zone = '+00:00';
  SET at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', SYSDATE(6));
  SET SESSION time_zone = zone;
  RETURN at;
END;

CREATE OR REPLACE FUNCTION idem_now() RETURNS BIGINT
NOT DETERMINISTIC NO SQL
RETURN idem_micros() DIV 1000;
