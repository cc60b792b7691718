-- Requests that a viewer's data, or all of a customer's, be deleted. The finalizer and the service query carry them out.
CREATE TABLE accounts.deletions (
    id              uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    number          bigint      GENERATED ALWAYS AS IDENTITY UNIQUE,
    -- Null: asked for by a command, for a customer that no organisation owns by name.
    organisation_id uuid,
    customer_id     text        NOT NULL CHECK (length(customer_id) BETWEEN 1 AND 64),
    -- Null for a whole customer; and of a viewer once it is done: then the hash alone says who it was.
    viewer          text        CHECK (length(viewer) BETWEEN 1 AND 500),
    -- SHA-256 of the viewer's id; null for a whole customer.
    viewer_sha256   bytea,
    -- Recorded sessions: those that were named, later also those of the viewer's views; empty once it is done.
    sessions        text[]      NOT NULL DEFAULT '{}',
    asked_by        text        NOT NULL,
    asked_at        timestamptz NOT NULL DEFAULT now(),
    state           text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'done', 'failed')),
    problem         text        NOT NULL DEFAULT '',
    ended_at        timestamptz
);
CREATE INDEX ON accounts.deletions (organisation_id, number);
CREATE INDEX ON accounts.deletions (number) WHERE state IN ('pending', 'running');

-- What is deleted where, in order: the proof of a request.
CREATE TABLE accounts.deletion_steps (
    deletion_id uuid        NOT NULL REFERENCES accounts.deletions ON DELETE CASCADE,
    position    integer     NOT NULL,
    step        text        NOT NULL,
    state       text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'done')),
    -- What was deleted, by name: how many; of topics until when (ms since 1970) they have it.
    found       jsonb       NOT NULL DEFAULT '{}',
    began_at    timestamptz,
    ended_at    timestamptz,
    PRIMARY KEY (deletion_id, step)
);

-- For how many days a customer's data is kept, by kind, where that is fewer than the installation keeps it.
CREATE TABLE accounts.retention (
    customer_id text    NOT NULL CHECK (length(customer_id) BETWEEN 1 AND 64),
    kind        text    NOT NULL CHECK (kind IN ('views', 'beacons', 'recordings', 'applications')),
    days        integer NOT NULL CHECK (days BETWEEN 1 AND 36500),
    PRIMARY KEY (customer_id, kind)
);
