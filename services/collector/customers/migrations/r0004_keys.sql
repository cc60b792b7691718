-- Write keys that the product makes, beside those that an operator lists in column `keys`. They are public: pages contain them.

CREATE TABLE collector.keys (
    key                text             PRIMARY KEY CHECK (key ~ '^[A-Za-z0-9_-]{1,64}$'),
    -- Keys of a customer that is not listed (any more) are in force nowhere.
    customer_id        text             NOT NULL,
    name               text             NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    origins            text[]           NOT NULL DEFAULT '{}', -- none: those of the customer
    -- Of one collector process; null: what the customer has.
    beacons_per_second double precision CHECK (beacons_per_second > 0),
    bytes_per_second   double precision CHECK (bytes_per_second > 0),
    made_by            text             NOT NULL,
    created_at         timestamptz      NOT NULL DEFAULT now(),
    -- Of a key that another one replaces: so long both hold.
    expires_at         timestamptz,
    revoked_at         timestamptz
);
CREATE INDEX ON collector.keys (customer_id, created_at, key);
CREATE INDEX ON collector.keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TRIGGER count_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON collector.keys
    FOR EACH STATEMENT EXECUTE FUNCTION collector.count_customers_version();
