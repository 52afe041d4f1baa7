-- Version 4: the tables have a name of ours before them, because a service's business tables lie in
-- the same file: only so is one commit of both (protocol.md §17).

ALTER TABLE running RENAME TO idem_running;
ALTER TABLE slots RENAME TO idem_slots;
ALTER TABLE requests RENAME TO idem_requests;
ALTER TABLE evidence RENAME TO idem_evidence;
ALTER TABLE meta RENAME TO idem_meta;
ALTER TABLE route_names RENAME TO idem_route_names;
ALTER TABLE digest_secrets RENAME TO idem_digest_secrets;
