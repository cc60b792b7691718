-- Addresses of the page under a name: a person's, or those of a whole organisation.
CREATE TABLE accounts.saved_views (
    id              uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid        NOT NULL REFERENCES accounts.organisations ON DELETE CASCADE,
    -- Null: the organisation's, for all its people.
    person_id       uuid,
    name            text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- Path and query, without the page's host.
    address         text        NOT NULL CHECK (address LIKE '/%' AND length(address) <= 8000),
    -- The customer that the address names; null: all.
    customer_id     text        CHECK (length(customer_id) BETWEEN 1 AND 64),
    made_by         text        NOT NULL,
    saved_at        timestamptz NOT NULL DEFAULT now(),
    UNIQUE NULLS NOT DISTINCT (organisation_id, person_id, name),
    -- Who is no longer a member has none there.
    FOREIGN KEY (person_id, organisation_id) REFERENCES accounts.members ON DELETE CASCADE
);

-- From which figure on a metric is good or bad, where somebody chose it; the code has what holds else.
CREATE TABLE accounts.thresholds (
    organisation_id uuid             NOT NULL REFERENCES accounts.organisations ON DELETE CASCADE,
    -- Empty: for all customers of the organisation that have no own.
    customer_id     text             NOT NULL CHECK (length(customer_id) <= 64),
    metric          text             NOT NULL CHECK (length(metric) BETWEEN 1 AND 100),
    good            double precision NOT NULL,
    bad             double precision NOT NULL CHECK (good <= bad),
    -- Below so many views (or viewers) nothing is judged.
    n               integer          NOT NULL CHECK (n >= 1),
    PRIMARY KEY (organisation_id, customer_id, metric)
);
