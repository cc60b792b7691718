-- From where a person has logged in: logins there do not wait because strangers elsewhere have guessed.
CREATE TABLE accounts.known_sites (
    person_id uuid        NOT NULL REFERENCES accounts.people ON DELETE CASCADE,
    -- An address; of IPv6 the network of its household (core/sites.py).
    site      text        NOT NULL,
    seen_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (person_id, site)
);
CREATE INDEX ON accounts.known_sites (seen_at);
