-- What people see a customer (an environment) named by.
ALTER TABLE accounts.customers ADD COLUMN name text NOT NULL DEFAULT '' CHECK (length(name) <= 200);

-- An invitation that is withdrawn is used up by nobody.
ALTER TABLE accounts.links ADD COLUMN made_by text NOT NULL DEFAULT '';
CREATE INDEX ON accounts.links (organisation_id, created_at, id) WHERE kind = 'invitation' AND used_at IS NULL;

-- The second factor (RFC 6238). The secret is what both sides compute with, so it is stored as it is.
ALTER TABLE accounts.people
    ADD COLUMN totp_secret text,
    -- Null: it was begun, and no code has shown yet that the person has it.
    ADD COLUMN totp_since  timestamptz,
    -- The last step whose code was taken: each is taken once.
    ADD COLUMN totp_step   bigint NOT NULL DEFAULT 0;

CREATE TABLE accounts.recovery_codes (
    person_id uuid  NOT NULL REFERENCES accounts.people ON DELETE CASCADE,
    hash      bytea NOT NULL,
    PRIMARY KEY (person_id, hash)
);

-- Who somebody is for an OpenID provider: its subjects never change, addresses may.
CREATE TABLE accounts.external_identities (
    issuer     text        NOT NULL CHECK (length(issuer) <= 300),
    subject    text        NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    person_id  uuid        NOT NULL REFERENCES accounts.people ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX ON accounts.external_identities (person_id);

-- Logins that are under way at a provider; the browser has the credential in a cookie.
CREATE TABLE accounts.external_logins (
    id          text        PRIMARY KEY,
    hash        bytea       NOT NULL,
    nonce       text        NOT NULL,
    verifier    text        NOT NULL,
    destination text        NOT NULL,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX ON accounts.external_logins (expires_at);

-- The audit log is read by action too.
CREATE INDEX ON accounts.audit (organisation_id, action, id);
