-- Else a page of an actor with few rows, or none, reads the whole log of its organisation.
CREATE INDEX ON accounts.audit (organisation_id, actor, id);
