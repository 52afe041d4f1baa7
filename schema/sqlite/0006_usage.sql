-- Version 6: what the counted records of each scope take of its quota (src/core/quota.hpp), written in the transaction
-- of the records. What lay there before is counted for nobody.
CREATE TABLE idem_usage (
  scope TEXT PRIMARY KEY,
  active INTEGER NOT NULL,               -- records that have not expired
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
