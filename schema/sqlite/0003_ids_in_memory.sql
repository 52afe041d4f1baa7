-- Version 3: settled records are found by an index in memory (id_index.hpp). One in the file cost
-- every settling write a page of its own, because ids are digests and so spread over all of it.

DROP INDEX IF EXISTS slots_by_id;
DROP INDEX IF EXISTS slots_by_due;

-- For sweeper, reaper and the counts by state. It has the ids, too, as a second copy that a start
-- compares with the rows; the slot before them keeps it growing at its end only.
CREATE INDEX slots_by_due ON slots (state, due_at, slot, id);
