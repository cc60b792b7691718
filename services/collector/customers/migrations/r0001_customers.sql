-- Customers and their terms, as docs/collector.md has them. The collectors read it; the operator writes it.

CREATE SCHEMA collector;

CREATE TABLE collector.customers (
    customer_id           text             PRIMARY KEY CHECK (customer_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    keys                  text[]           NOT NULL DEFAULT '{}', -- none: the id is the key
    revoked_keys          text[]           NOT NULL DEFAULT '{}',
    beacons_per_second    double precision CHECK (beacons_per_second > 0),
    bytes_per_second      double precision CHECK (bytes_per_second > 0),
    -- CPU time that reading its requests takes, ms a second.
    cpu_ms_per_second     double precision CHECK (cpu_ms_per_second > 0),
    spans_per_second      double precision CHECK (spans_per_second > 0),
    calls_per_second      double precision CHECK (calls_per_second > 0),
    recordings_per_minute double precision CHECK (recordings_per_minute > 0),
    new_views_per_second  double precision CHECK (new_views_per_second > 0),
    signing_keys          text[]           NOT NULL DEFAULT '{}', -- secret; none: views are not signed
    signed_views          text             NOT NULL DEFAULT 'mark' CHECK (signed_views IN ('mark', 'require')),
    origins               text[]           NOT NULL DEFAULT '{}', -- none: all
    ipv4_bits_kept        int              NOT NULL DEFAULT 24 CHECK (ipv4_bits_kept BETWEEN 0 AND 24),
    ipv6_bits_kept        int              NOT NULL DEFAULT 48 CHECK (ipv6_bits_kept BETWEEN 0 AND 48),
    privacy_signals       text             NOT NULL DEFAULT 'honour' CHECK (privacy_signals IN ('honour', 'ignore'))
);

-- One row, counted up by every statement that changes the table: so that collectors read the table only when it has changed.
CREATE TABLE collector.customers_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint  NOT NULL
);

INSERT INTO collector.customers_version (version) VALUES (0);

CREATE FUNCTION collector.count_customers_version() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    UPDATE collector.customers_version SET version = version + 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER count_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON collector.customers
    FOR EACH STATEMENT EXECUTE FUNCTION collector.count_customers_version();
