-- What viewers' experience is held against, what was found, and who is notified. The dashboard and the service notifications use it.

CREATE SCHEMA alerts;

CREATE TABLE alerts.receivers (
    id              uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid        NOT NULL,
    name            text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    kind            text        NOT NULL CHECK (kind IN ('webhook', 'slack', 'teams', 'pagerduty', 'email')),
    -- Addresses and secrets: shown to nobody.
    target          jsonb       NOT NULL,
    -- Replaces the text of a message; null: the product's own.
    template        text        CHECK (length(template) <= 4000),
    changed_at      timestamptz NOT NULL DEFAULT now(),
    changed_by      text        NOT NULL,
    deleted_at      timestamptz
);
CREATE INDEX ON alerts.receivers (organisation_id);

-- Of each environment (customer) how often its rules have changed, and which change the processor was given.
CREATE TABLE alerts.environments (
    customer_id text   PRIMARY KEY,
    version     bigint NOT NULL,
    published   bigint NOT NULL DEFAULT 0
);
CREATE INDEX unpublished ON alerts.environments (customer_id) WHERE version > published;

CREATE TABLE alerts.rules (
    id          uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    customer_id text        NOT NULL,
    version     integer     NOT NULL DEFAULT 1,
    body        jsonb       NOT NULL,
    changed_at  timestamptz NOT NULL DEFAULT now(),
    changed_by  text        NOT NULL,
    deleted_at  timestamptz
);
CREATE INDEX ON alerts.rules (customer_id) WHERE deleted_at IS NULL;

-- Every version that a rule had: an incident names the one that it was found by.
CREATE TABLE alerts.rule_versions (
    rule_id    uuid        NOT NULL REFERENCES alerts.rules ON DELETE CASCADE,
    version    integer     NOT NULL,
    body       jsonb       NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text        NOT NULL,
    PRIMARY KEY (rule_id, version)
);

CREATE TABLE alerts.incidents (
    id              text        PRIMARY KEY,
    customer_id     text        NOT NULL,
    rule_id         text        NOT NULL,
    revision        integer     NOT NULL,
    opened_at       timestamptz NOT NULL,
    closed_at       timestamptz,
    -- As its newest change has it.
    event           jsonb       NOT NULL,
    acknowledged_at timestamptz,
    acknowledged_by text,
    muted_until     timestamptz,
    muted_by        text
);
CREATE INDEX ON alerts.incidents (customer_id, opened_at DESC, id);

CREATE TABLE alerts.changes (
    incident_id text        NOT NULL REFERENCES alerts.incidents ON DELETE CASCADE,
    revision    integer     NOT NULL,
    event       jsonb       NOT NULL,
    landed_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (incident_id, revision)
);

CREATE TABLE alerts.comments (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident_id text        NOT NULL REFERENCES alerts.incidents ON DELETE CASCADE,
    at          timestamptz NOT NULL DEFAULT now(),
    author      text        NOT NULL,
    text        text        NOT NULL CHECK (length(text) BETWEEN 1 AND 4000)
);
CREATE INDEX ON alerts.comments (incident_id, id);

-- One message to one receiver. Its id is the idempotency key.
CREATE TABLE alerts.deliveries (
    id          text        PRIMARY KEY,
    receiver_id uuid        NOT NULL REFERENCES alerts.receivers ON DELETE CASCADE,
    -- Null: a test.
    incident_id text,
    revision    integer     NOT NULL DEFAULT 0,
    event       jsonb,
    state       text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'dead', 'skipped')),
    attempts    integer     NOT NULL DEFAULT 0,
    due_at      timestamptz NOT NULL DEFAULT now(),
    made_at     timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    problem     text
);
CREATE INDEX waiting ON alerts.deliveries (due_at) WHERE state = 'waiting';
CREATE INDEX in_order ON alerts.deliveries (incident_id, receiver_id, revision);
CREATE INDEX dead ON alerts.deliveries (receiver_id, made_at) WHERE state = 'dead';
