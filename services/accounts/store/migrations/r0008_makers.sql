-- The person who made it, or who made the token that made it; null: a command did. What somebody made ends with the right to make it.
ALTER TABLE accounts.tokens ADD COLUMN made_by_id text;
ALTER TABLE accounts.links
    ADD COLUMN made_by_id text,
    -- The organisation that the maker acted for: who runs the installation invites owners of others.
    ADD COLUMN made_in    uuid;

-- What was made before is known by its maker's address.
UPDATE accounts.tokens AS t SET made_by_id = p.id::text
FROM accounts.people AS p JOIN accounts.members AS m ON m.person_id = p.id
WHERE p.email = t.made_by AND m.organisation_id = t.organisation_id;
UPDATE accounts.links AS l SET made_by_id = p.id::text, made_in = m.organisation_id
FROM accounts.people AS p JOIN accounts.members AS m ON m.person_id = p.id
WHERE l.kind = 'invitation' AND p.email = l.made_by AND m.organisation_id = l.organisation_id;
UPDATE accounts.links AS l SET made_by_id = p.id::text, made_in = m.organisation_id
FROM accounts.people AS p JOIN accounts.members AS m ON m.person_id = p.id JOIN accounts.organisations AS o ON o.id = m.organisation_id
WHERE l.kind = 'invitation' AND l.made_by_id IS NULL AND p.email = l.made_by AND o.owns_rest;

CREATE INDEX ON accounts.links (made_in, made_by_id) WHERE kind = 'invitation' AND used_at IS NULL;
