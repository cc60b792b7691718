-- When each table of the warehouse, and this schema's part of Postgres, was last maintained: ms since 1970. A table that is new here
-- counts as maintained when it was first seen.
CREATE TABLE finalizer.maintained (name text PRIMARY KEY, at_ms bigint NOT NULL);
