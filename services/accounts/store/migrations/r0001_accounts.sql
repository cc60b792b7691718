-- Who may see what. The dashboard (and whoever else asks who somebody is) reads and writes it; no other service does.

CREATE SCHEMA accounts;

CREATE TABLE accounts.organisations (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    name       text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- It owns every customer that no other organisation owns: it runs the installation.
    owns_rest  boolean     NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX one_owns_the_rest ON accounts.organisations (owns_rest) WHERE owns_rest;

-- Customers (environments) of organisations. A customer that is not here belongs to the organisation that owns the rest.
CREATE TABLE accounts.customers (
    customer_id     text        PRIMARY KEY CHECK (customer_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    organisation_id uuid        NOT NULL REFERENCES accounts.organisations ON DELETE CASCADE,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON accounts.customers (organisation_id);

-- One row, counted up by every statement that changes who owns what: it is read anew only then.
CREATE TABLE accounts.ownership (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint  NOT NULL
);
INSERT INTO accounts.ownership (version) VALUES (1);

CREATE FUNCTION accounts.count_ownership() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    UPDATE accounts.ownership SET version = version + 1;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_ownership AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON accounts.customers
    FOR EACH STATEMENT EXECUTE FUNCTION accounts.count_ownership();
CREATE TRIGGER count_ownership AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON accounts.organisations
    FOR EACH STATEMENT EXECUTE FUNCTION accounts.count_ownership();

CREATE TABLE accounts.people (
    id             uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    -- In lower case.
    email          text        NOT NULL UNIQUE CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 254),
    name           text        NOT NULL DEFAULT '' CHECK (length(name) <= 200),
    -- argon2id, with its parameters and salt; null: no login by password.
    password_hash  text,
    disabled_at    timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE accounts.members (
    person_id       uuid        NOT NULL REFERENCES accounts.people ON DELETE CASCADE,
    organisation_id uuid        NOT NULL REFERENCES accounts.organisations ON DELETE CASCADE,
    role            text        NOT NULL CHECK (role IN ('owner', 'admin', 'editor', 'viewer')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (person_id, organisation_id)
);
CREATE INDEX ON accounts.members (organisation_id);

-- Of every credential the hash alone.
CREATE TABLE accounts.sessions (
    id              text        PRIMARY KEY,
    hash            bytea       NOT NULL,
    person_id       uuid        NOT NULL,
    organisation_id uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    seen_at         timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    address         text,
    agent           text,
    -- Who leaves the organisation leaves its sessions.
    FOREIGN KEY (person_id, organisation_id) REFERENCES accounts.members ON DELETE CASCADE
);
CREATE INDEX ON accounts.sessions (person_id);
CREATE INDEX ON accounts.sessions (expires_at);

-- Links that work once: for the first owner, into an organisation by invitation, or a login.
CREATE TABLE accounts.links (
    id              text        PRIMARY KEY,
    hash            bytea       NOT NULL,
    kind            text        NOT NULL CHECK (kind IN ('first_owner', 'invitation', 'login')),
    person_id       uuid        REFERENCES accounts.people ON DELETE CASCADE,
    organisation_id uuid        REFERENCES accounts.organisations ON DELETE CASCADE,
    email           text,
    role            text        CHECK (role IN ('owner', 'admin', 'editor', 'viewer')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    used_at         timestamptz,
    CHECK (kind <> 'login' OR (person_id IS NOT NULL AND organisation_id IS NOT NULL)),
    CHECK (kind <> 'invitation' OR (organisation_id IS NOT NULL AND email IS NOT NULL AND role IS NOT NULL))
);
CREATE INDEX ON accounts.links (expires_at);

CREATE TABLE accounts.tokens (
    id              text        PRIMARY KEY,
    hash            bytea       NOT NULL,
    organisation_id uuid        NOT NULL REFERENCES accounts.organisations ON DELETE CASCADE,
    name            text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    scopes          text[]      NOT NULL CHECK (
        cardinality(scopes) > 0 AND scopes <@ ARRAY['read_metrics', 'read_views', 'manage', 'ingest']
    ),
    -- Null: all customers of the organisation.
    customers       text[],
    made_by         text        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,
    revoked_at      timestamptz,
    -- To the minute.
    used_at         timestamptz
);
CREATE INDEX ON accounts.tokens (organisation_id);

-- Logins that failed lately, as a bucket that drains; `subject` is a hash.
CREATE TABLE accounts.attempts (
    subject    text             PRIMARY KEY,
    failures   double precision NOT NULL,
    changed_at timestamptz      NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX ON accounts.attempts (changed_at);

-- Who did what, when, from where. Rows are added, and neither changed nor taken away.
CREATE TABLE accounts.audit (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              timestamptz NOT NULL DEFAULT now(),
    organisation_id uuid,
    actor_kind      text        NOT NULL CHECK (actor_kind IN ('person', 'token', 'system', 'nobody')),
    actor_id        text,
    actor           text        NOT NULL,
    address         text,
    action          text        NOT NULL,
    target          text        NOT NULL DEFAULT '',
    details         jsonb       NOT NULL DEFAULT '{}'
);
CREATE INDEX ON accounts.audit (organisation_id, id);

CREATE FUNCTION accounts.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'accounts.audit is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON accounts.audit
    FOR EACH ROW EXECUTE FUNCTION accounts.refuse_change();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON accounts.audit
    FOR EACH STATEMENT EXECUTE FUNCTION accounts.refuse_change();
