-- Rollups by hour and day and by dimensions, in one table; what the page reads are views of it. Recent views, by key.

-- All that was published is rebuilt into the new table, before the next batch ends.
INSERT INTO finalizer.dirty_slices (hour, customer_id)
    SELECT extract(epoch FROM hour)::bigint / 3600, customer_id FROM serving.rollups_hourly ON CONFLICT DO NOTHING;
DROP TABLE serving.rollups_hourly;
DROP TABLE serving.histograms_hourly;

-- One row a group (services/finalizer/transforms/rollups.py): the hours and days of table `rollups`.
CREATE TABLE serving.rollups (
    grain              text        NOT NULL CHECK (grain IN ('hour', 'day')),
    start              timestamptz NOT NULL,
    customer_id        text        NOT NULL,
    dimensions         text        NOT NULL, -- names joined by +; the empty text is the total
    members            text[]      NOT NULL, -- their values, null where unknown
    views              bigint      NOT NULL,
    started            bigint      NOT NULL, -- views with a first frame
    startup_failures   bigint      NOT NULL,
    playback_failures  bigint      NOT NULL,
    exits_before_start bigint      NOT NULL,
    views_dropped      bigint      NOT NULL,
    -- Sums of what clients claim: a view's value fits 64 bits, a group's sum need not.
    watch_ms           numeric     NOT NULL,
    playing_ms         numeric     NOT NULL,
    rebuffer_count     numeric     NOT NULL,
    rebuffer_ms        numeric     NOT NULL,
    seek_count         numeric     NOT NULL,
    seek_ms            numeric     NOT NULL,
    bitrate_integral   numeric     NOT NULL, -- bps x ms, over bitrate_time_ms
    bitrate_time_ms    numeric     NOT NULL,
    beacons            numeric     NOT NULL,
    duplicates         numeric     NOT NULL,
    uniques            bytea       NOT NULL, -- HLL sketch of the viewers
    -- Buckets are those of shared/statistics/histogram.py; the counts in the same order.
    startup_ms_buckets  int[]    NOT NULL,
    startup_ms_counts   bigint[] NOT NULL,
    rebuffer_ms_buckets int[]    NOT NULL,
    rebuffer_ms_counts  bigint[] NOT NULL,
    PRIMARY KEY (customer_id, dimensions, grain, start, members)
);
-- The page asks for all customers of the last hours.
CREATE INDEX rollups_by_start ON serving.rollups (grain, dimensions, start, customer_id);

-- Finished views of the last days, by key.
CREATE TABLE serving.views (
    customer_id text        NOT NULL,
    view_id     text        NOT NULL,
    generation  bigint      NOT NULL,
    revision    bigint      NOT NULL,
    deleted     boolean     NOT NULL, -- taken back; stays, so that an older revision cannot bring it back
    day         bigint      NOT NULL, -- since 1970, of the first beacon
    ended       timestamptz NOT NULL, -- by the client's clock
    document    text        NOT NULL, -- the whole row as JSON; not json, whose functions refuse a zero character
    PRIMARY KEY (customer_id, view_id)
);
CREATE INDEX views_by_end ON serving.views (customer_id, ended DESC) WHERE NOT deleted;
CREATE INDEX views_by_day ON serving.views (day);

CREATE VIEW serving.rollups_hourly AS
    SELECT start AS hour, customer_id, views, started, startup_failures, playback_failures, exits_before_start,
           views_dropped, watch_ms, playing_ms, rebuffer_count, rebuffer_ms, seek_count, seek_ms, bitrate_integral,
           bitrate_time_ms, beacons, duplicates
    FROM serving.rollups WHERE grain = 'hour' AND dimensions = '';

CREATE VIEW serving.histograms_hourly AS
    SELECT start AS hour, customer_id, 'startup_ms' AS metric, bucket, count
    FROM serving.rollups, unnest(startup_ms_buckets, startup_ms_counts) AS histogram (bucket, count)
    WHERE grain = 'hour' AND dimensions = ''
    UNION ALL
    SELECT start AS hour, customer_id, 'rebuffer_ms' AS metric, bucket, count
    FROM serving.rollups, unnest(rebuffer_ms_buckets, rebuffer_ms_counts) AS histogram (bucket, count)
    WHERE grain = 'hour' AND dimensions = '';

-- Generations that were swapped in and can be taken back.
CREATE TABLE finalizer.swapped (generation bigint PRIMARY KEY);
