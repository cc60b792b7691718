-- What the dashboard reads, and the finalizer's own book-keeping beside it, so that both change in one transaction.

CREATE SCHEMA serving;

CREATE TABLE serving.rollups_hourly (
    hour               timestamptz NOT NULL,
    customer_id        text        NOT NULL,
    views              bigint      NOT NULL,
    started            bigint      NOT NULL, -- views with a first frame
    startup_failures   bigint      NOT NULL,
    playback_failures  bigint      NOT NULL,
    exits_before_start bigint      NOT NULL,
    views_dropped      bigint      NOT NULL,
    watch_ms           bigint      NOT NULL,
    playing_ms         bigint      NOT NULL,
    rebuffer_count     bigint      NOT NULL,
    rebuffer_ms        bigint      NOT NULL,
    seek_count         bigint      NOT NULL,
    seek_ms            bigint      NOT NULL,
    bitrate_integral   numeric     NOT NULL, -- bps x ms, over bitrate_time_ms
    bitrate_time_ms    bigint      NOT NULL,
    beacons            bigint      NOT NULL,
    duplicates         bigint      NOT NULL,
    PRIMARY KEY (customer_id, hour)
);

-- Buckets are those of shared/statistics/histogram.py.
CREATE TABLE serving.histograms_hourly (
    hour        timestamptz NOT NULL,
    customer_id text        NOT NULL,
    metric      text        NOT NULL CHECK (metric IN ('startup_ms', 'rebuffer_ms')),
    bucket      int         NOT NULL,
    count       bigint      NOT NULL,
    PRIMARY KEY (customer_id, metric, hour, bucket)
);

CREATE SCHEMA finalizer;

-- Slices whose views have changed, or may have, since they were last published. `hour` counts from 1970.
CREATE TABLE finalizer.dirty_slices (
    hour        bigint NOT NULL,
    customer_id text   NOT NULL,
    PRIMARY KEY (hour, customer_id)
);

-- One row: which driver may write (the one that took the largest epoch), and which batch of which checkpoint is published.
CREATE TABLE finalizer.fence (
    only_row      boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch         bigint      NOT NULL,
    checkpoint_id text,
    batch_id      bigint,
    published_at  timestamptz
);
