-- How many bytes a record counts in its scope's quota, as in include/idem/limits.hpp.

CREATE OR REPLACE FUNCTION idem.record_charge() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN 1024;

CREATE OR REPLACE FUNCTION idem.tombstone_charge() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN 256;

CREATE OR REPLACE FUNCTION idem.answer_charge(head bytea, body bytea) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE WHEN idem.is_small(head, body) THEN 0 ELSE octet_length(head) + octet_length(body) END;

CREATE OR REPLACE FUNCTION idem.active_of(s idem.slots) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE WHEN s.charged > 0 AND s.state <> 'expired' THEN 1 ELSE 0 END;
