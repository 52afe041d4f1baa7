-- Version 2: how records get their names, so that a start with another naming can be refused
-- (protocol.md §2). Records made before it are of generation 1 and were named by a table without
-- routes, which is what two empty tables say; the id of the store's own secret, which made them all,
-- is put in by the program.

-- The route table that was adopted last, in its order.
CREATE TABLE route_names (
  position INTEGER PRIMARY KEY,
  methods TEXT NOT NULL,                 -- separated by spaces; none: all
  pattern TEXT NOT NULL,
  name TEXT NOT NULL,                    -- empty: each method and path is its own operation
  formerly TEXT NOT NULL                 -- separated by line feeds, which no name holds
) STRICT;

-- Which secret ids and fingerprints are made under: from each generation on, until the next row's.
CREATE TABLE digest_secrets (
  generation INTEGER PRIMARY KEY,
  id TEXT NOT NULL                       -- a keyed digest of the secret, never the secret
) STRICT;
