-- What people call a custom dimension of their views, in all environments of the organisation.
CREATE TABLE accounts.custom_dimensions (
    organisation_id uuid NOT NULL REFERENCES accounts.organisations ON DELETE CASCADE,
    -- As players send it.
    name            text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    title           text NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
    PRIMARY KEY (organisation_id, name)
);
