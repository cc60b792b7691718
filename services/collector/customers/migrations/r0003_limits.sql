-- What limits customers and what they refuse, for the page of limits: no keys, no secrets. Collectors write, the dashboard reads.

-- Members of a set of dimensions that an hour of the customer keeps apart (docs/warehouse.md); null: the default.
ALTER TABLE collector.customers ADD COLUMN members_max int CHECK (members_max BETWEEN 1 AND 1000000);

CREATE SCHEMA limits;

CREATE VIEW limits.customers AS
    SELECT customer_id, beacons_per_second, new_views_per_second, spans_per_second, calls_per_second,
        recordings_per_minute, bytes_per_second, bytes_per_day, cpu_ms_per_second, members_max
    FROM collector.customers;

-- What holds for customers that have no limit of their own, as the services' settings have it.
CREATE TABLE limits.defaults (
    name  text             PRIMARY KEY,
    value double precision NOT NULL
);

-- Processes of collectors, each with the number of its last report: a report whose outcome is unknown is not counted twice.
CREATE TABLE limits.collectors (
    process     text        PRIMARY KEY,
    report      bigint      NOT NULL,
    reported_at timestamptz NOT NULL
);

-- Of each customer a bucket that all collectors fill with the bytes they take; it drains by bytes_per_day.
CREATE TABLE limits.stored (
    customer_id   text             PRIMARY KEY,
    bytes         double precision NOT NULL,
    bytes_per_day double precision NOT NULL,
    changed_at    timestamptz      NOT NULL
) WITH (fillfactor = 50);

-- What each limit has refused, by hour: requests, and what they held in the unit of the limit.
CREATE TABLE limits.refused (
    customer_id text             NOT NULL,
    name        text             NOT NULL,
    hour        timestamptz      NOT NULL,
    requests    bigint           NOT NULL,
    amount      double precision NOT NULL,
    last_at     timestamptz      NOT NULL,
    PRIMARY KEY (customer_id, name, hour)
);
CREATE INDEX ON limits.refused (hour);
