-- The checksums of a record and of its parts, as src/store/mysql/row.cpp computes them: whatever changes a record in
-- SQL seals it again before it commits.

CREATE OR REPLACE PROCEDURE idem_seal(IN p_id BINARY(16))
MODIFIES SQL DATA
UPDATE idem_slots SET record_sum = CRC32(CONCAT_WS('|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation,
    HEX(fingerprint), fence, HEX(token), HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone,
    charged, HEX(recovery_point), release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''),
    reconcile_attempts, HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
    COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
    COALESCE(answer_status, ''), COALESCE(body_kept, '')))
WHERE id = p_id;

-- True if the record is as it was written, so that a step may be made over it. None: there is no record.
CREATE OR REPLACE FUNCTION idem_is_sound(p_id BINARY(16)) RETURNS TINYINT
READS SQL DATA
RETURN (SELECT record_sum = CRC32(CONCAT_WS('|', HEX(id), state, due_at, HEX(scope), HEX(operation), generation,
    HEX(fingerprint), fence, HEX(token), HEX(owner), locked_until, dispatched, lease_policy, retention, tombstone,
    charged, HEX(recovery_point), release_basis, HEX(last_error_code), COALESCE(reconcile_after, ''),
    reconcile_attempts, HEX(upstream_reference), HEX(provider), HEX(sealed_key), contested, created_at, changed_at,
    COALESCE(completed_at, ''), COALESCE(expires_at, ''), COALESCE(tombstone_until, ''), has_request,
    COALESCE(answer_status, ''), COALESCE(body_kept, '')))
  FROM idem_slots WHERE id = p_id);

CREATE OR REPLACE FUNCTION idem_answer_sum(p_id BINARY(16), p_head LONGBLOB, p_body LONGBLOB) RETURNS INT UNSIGNED
DETERMINISTIC NO SQL
RETURN CRC32(CONCAT(p_id, UNHEX(LPAD(HEX(LENGTH(p_head)), 16, '0')), p_head, p_body));

CREATE OR REPLACE FUNCTION idem_request_sum(p_id BINARY(16), p_request LONGBLOB) RETURNS INT UNSIGNED
DETERMINISTIC NO SQL
RETURN CRC32(CONCAT(p_id, p_request));
