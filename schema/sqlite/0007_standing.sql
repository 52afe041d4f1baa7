-- Version 7: what an event may be about is found without a walk through all records. Partial: they cost nothing to the
-- rows of other states.
CREATE INDEX slots_pending ON idem_slots (id) WHERE state = 1;
CREATE INDEX slots_retryable ON idem_slots (id) WHERE state = 4;
