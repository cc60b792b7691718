-- Finished views as typed rows, and the sums of their minutes and hours. Triggers keep the sums: they are right whoever writes.

-- Its rows come again from topic views (services/serving) and from the finalizer's batches.
DROP TABLE serving.views;

-- One row a view and day, as in the warehouse: the newest (generation, revision).
CREATE TABLE serving.views (
    customer_id       text    NOT NULL,
    view_id           text    NOT NULL,
    day               bigint  NOT NULL, -- since 1970, of the first beacon
    generation        bigint  NOT NULL,
    revision          bigint  NOT NULL,
    deleted           boolean NOT NULL, -- taken back; stays, so that an older revision cannot bring it back
    first_append_ms   bigint  NOT NULL,
    last_append_ms    bigint  NOT NULL,
    view_end_ms       bigint  NOT NULL,
    viewer_id         text,
    viewer_user_id    text,
    country           text,
    device            text,
    os                text,
    browser           text,
    player_name       text,
    cdn               text,
    stream_type       text,
    video_id          text,
    experiment        text,
    source            text    NOT NULL,
    startup_unknown   text,
    startup_failed    boolean NOT NULL,
    playback_failed   boolean NOT NULL,
    ebvs              boolean NOT NULL,
    view_dropped      boolean NOT NULL,
    watch_ms          bigint  NOT NULL,
    playing_ms        bigint  NOT NULL,
    rebuffer_count    bigint  NOT NULL,
    rebuffer_ms       bigint  NOT NULL,
    seek_count        bigint  NOT NULL,
    seek_ms           bigint  NOT NULL,
    bitrate_integral  bigint  NOT NULL, -- bps x ms, over bitrate_time_ms
    bitrate_time_ms   bigint  NOT NULL,
    beacon_count      bigint  NOT NULL,
    duplicate_count   bigint  NOT NULL,
    startup_ms        bigint,
    document          text    NOT NULL, -- the whole row as JSON; not json, whose functions refuse a zero character
    -- When it counts, in hours and minutes since 1970: shared/measures.py, COUNTED_MS.
    hour   bigint NOT NULL GENERATED ALWAYS AS (floor(
        greatest(least(view_end_ms, last_append_ms + 3600000), first_append_ms - 86400000) / 3600000.0)::bigint) STORED,
    minute bigint NOT NULL GENERATED ALWAYS AS (floor(
        greatest(least(view_end_ms, last_append_ms + 3600000), first_append_ms - 86400000) / 60000.0)::bigint) STORED,
    ended  timestamptz NOT NULL GENERATED ALWAYS AS (to_timestamp(greatest(view_end_ms, 0) / 1000.0)) STORED,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (customer_id, view_id, day)
);
CREATE INDEX views_by_end ON serving.views (customer_id, ended DESC) WHERE NOT deleted;
CREATE INDEX views_by_hour ON serving.views (hour, customer_id);

-- One row: from which hour on all views are here. null: none are kept. Until `is_whole` some may be missing, and nobody reads sums.
CREATE TABLE serving.coverage (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    since_hour bigint,
    is_whole   boolean NOT NULL DEFAULT false
);
INSERT INTO serving.coverage DEFAULT VALUES;

-- Where the readers of topic views go on: written in the transaction that brings the rows.
CREATE TABLE serving.positions (
    topic_id     text   NOT NULL, -- a topic that is made again has another
    partition    int    NOT NULL,
    next_offset  bigint NOT NULL,
    -- The partition's records when this row was made; the append of the first of them, or of this row where there was none.
    first_offset bigint NOT NULL,
    fill_until   bigint NOT NULL,
    first_ms     bigint NOT NULL,
    landed_at    timestamptz,
    PRIMARY KEY (topic_id, partition)
);

-- Whose views are not to come back, when topic views is read again: SHA-256 of a viewer's id, and when it was forgotten.
CREATE TABLE serving.forgotten (
    customer_id  text   NOT NULL,
    viewer       bytea  NOT NULL,
    forgotten_ms bigint NOT NULL,
    PRIMARY KEY (customer_id, viewer)
);

-- As the measures of serving.rollups, by client (source). `start` counts minutes or hours since 1970.
CREATE TABLE serving.sums (
    grain              text    NOT NULL CHECK (grain IN ('minute', 'hour')),
    start              bigint  NOT NULL,
    customer_id        text    NOT NULL,
    source             text    NOT NULL,
    views              bigint  NOT NULL,
    started            bigint  NOT NULL,
    startup_failures   bigint  NOT NULL,
    playback_failures  bigint  NOT NULL,
    exits_before_start bigint  NOT NULL,
    views_dropped      bigint  NOT NULL,
    watch_ms           numeric NOT NULL,
    playing_ms         numeric NOT NULL,
    rebuffer_count     numeric NOT NULL,
    rebuffer_ms        numeric NOT NULL,
    seek_count         numeric NOT NULL,
    seek_ms            numeric NOT NULL,
    bitrate_integral   numeric NOT NULL,
    bitrate_time_ms    numeric NOT NULL,
    beacons            numeric NOT NULL,
    duplicates         numeric NOT NULL,
    PRIMARY KEY (grain, start, customer_id, source)
) WITH (fillfactor = 50);
CREATE TABLE serving.histograms (
    hour        bigint NOT NULL,
    customer_id text   NOT NULL,
    source      text   NOT NULL,
    metric      text   NOT NULL CHECK (metric IN ('startup_ms', 'rebuffer_ms')),
    bucket      int    NOT NULL, -- shared/statistics/histogram.py
    count       bigint NOT NULL,
    PRIMARY KEY (hour, customer_id, source, metric, bucket)
) WITH (fillfactor = 50);

-- Customers' hours of which the sums above are read. Of all others the rollups are: no view counts twice.
CREATE TABLE serving.hot_slices (
    hour        bigint      NOT NULL,
    customer_id text        NOT NULL,
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (hour, customer_id)
) WITH (fillfactor = 50);

-- The log of 1.02: shared/statistics/histogram.py.
CREATE FUNCTION serving.bucket(value bigint) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN value > 0 THEN floor(ln(value::float8) / 0.01980262729617973)::int
                WHEN value <= 0 THEN -2147483648 END;

-- One writer of views at a time, from before its first row lock to its commit: so sums have no deadlocks.
CREATE FUNCTION serving.lock_views() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7316201945);
    RETURN NULL;
END
$$;
CREATE TRIGGER lock_views BEFORE INSERT OR UPDATE OR DELETE ON serving.views EXECUTE FUNCTION serving.lock_views();

-- Three triggers and the recount, of one text: `changed` is a query of views with a sign, 1 for what counts now, -1 for what counted.
DO $do$
DECLARE
    counted CONSTANT text := $text$
    INSERT INTO serving.sums AS t
        SELECT CASE WHEN grouping(c.minute) = 0 THEN 'minute' ELSE 'hour' END, coalesce(c.minute, c.hour), c.customer_id, c.source,
               sum(c.sign),
               coalesce(sum(c.sign) FILTER (WHERE c.startup_ms IS NOT NULL
                                               OR coalesce(c.startup_unknown, 'not_started') <> 'not_started'), 0),
               coalesce(sum(c.sign) FILTER (WHERE c.startup_failed), 0),
               coalesce(sum(c.sign) FILTER (WHERE c.playback_failed), 0),
               coalesce(sum(c.sign) FILTER (WHERE c.ebvs), 0),
               coalesce(sum(c.sign) FILTER (WHERE c.view_dropped), 0),
               sum(c.sign * c.watch_ms), sum(c.sign * c.playing_ms), sum(c.sign * c.rebuffer_count), sum(c.sign * c.rebuffer_ms),
               sum(c.sign * c.seek_count), sum(c.sign * c.seek_ms), sum(c.sign * c.bitrate_integral),
               sum(c.sign * c.bitrate_time_ms), sum(c.sign * c.beacon_count), sum(c.sign * c.duplicate_count)
        FROM (%1$s) AS c
        WHERE NOT c.deleted AND c.hour >= since
        GROUP BY GROUPING SETS ((c.minute, c.customer_id, c.source), (c.hour, c.customer_id, c.source))
        ON CONFLICT (grain, start, customer_id, source) DO UPDATE SET
            views = t.views + excluded.views, started = t.started + excluded.started,
            startup_failures = t.startup_failures + excluded.startup_failures,
            playback_failures = t.playback_failures + excluded.playback_failures,
            exits_before_start = t.exits_before_start + excluded.exits_before_start,
            views_dropped = t.views_dropped + excluded.views_dropped,
            watch_ms = t.watch_ms + excluded.watch_ms, playing_ms = t.playing_ms + excluded.playing_ms,
            rebuffer_count = t.rebuffer_count + excluded.rebuffer_count, rebuffer_ms = t.rebuffer_ms + excluded.rebuffer_ms,
            seek_count = t.seek_count + excluded.seek_count, seek_ms = t.seek_ms + excluded.seek_ms,
            bitrate_integral = t.bitrate_integral + excluded.bitrate_integral,
            bitrate_time_ms = t.bitrate_time_ms + excluded.bitrate_time_ms,
            beacons = t.beacons + excluded.beacons, duplicates = t.duplicates + excluded.duplicates;
    INSERT INTO serving.histograms AS t
        SELECT c.hour, c.customer_id, c.source, m.metric, m.bucket, sum(c.sign)
        FROM (%1$s) AS c, LATERAL (VALUES ('startup_ms', serving.bucket(c.startup_ms)),
                                          ('rebuffer_ms', serving.bucket(c.rebuffer_ms))) AS m (metric, bucket)
        WHERE NOT c.deleted AND c.hour >= since AND m.bucket IS NOT NULL
        GROUP BY c.hour, c.customer_id, c.source, m.metric, m.bucket HAVING sum(c.sign) <> 0
        ON CONFLICT (hour, customer_id, source, metric, bucket) DO UPDATE SET count = t.count + excluded.count;
    INSERT INTO serving.hot_slices AS t
        SELECT DISTINCT c.hour, c.customer_id, statement_timestamp() FROM (%1$s) AS c
        WHERE NOT c.deleted AND c.hour >= since
        ON CONFLICT (hour, customer_id) DO UPDATE SET changed_at = excluded.changed_at;
    $text$;
    -- What nothing is left of has no row, as in the warehouse.
    clear CONSTANT text := $text$
    DELETE FROM serving.sums AS t USING (
        SELECT 'minute' AS grain, r.minute AS start, r.customer_id, r.source FROM old_rows AS r
        UNION SELECT 'hour', r.hour, r.customer_id, r.source FROM old_rows AS r
    ) AS gone
        WHERE t.grain = gone.grain AND t.start = gone.start AND t.customer_id = gone.customer_id AND t.source = gone.source
          AND t.views = 0;
    DELETE FROM serving.histograms AS t USING (SELECT DISTINCT r.hour, r.customer_id, r.source FROM old_rows AS r) AS gone
        WHERE t.count = 0 AND t.hour = gone.hour AND t.customer_id = gone.customer_id AND t.source = gone.source;
    $text$;
    kind record;
BEGIN
    FOR kind IN SELECT * FROM (VALUES
        ('insert', 'NEW TABLE AS new_rows', 'SELECT 1 AS sign, r.* FROM new_rows AS r', ''),
        ('update', 'OLD TABLE AS old_rows NEW TABLE AS new_rows',
         'SELECT 1 AS sign, r.* FROM new_rows AS r UNION ALL SELECT -1, r.* FROM old_rows AS r', clear),
        ('delete', 'OLD TABLE AS old_rows', 'SELECT -1 AS sign, r.* FROM old_rows AS r', clear)
    ) AS kinds (name, tables, changed, cleared)
    LOOP
        EXECUTE format($function$
            CREATE FUNCTION serving.count_%1$s() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
            DECLARE
                since CONSTANT bigint := (SELECT since_hour FROM serving.coverage);
            BEGIN
                %3$s %4$s
                RETURN NULL;
            END
            $body$;
            CREATE TRIGGER count_%1$s AFTER %1$s ON serving.views REFERENCING %2$s
                FOR EACH STATEMENT EXECUTE FUNCTION serving.count_%1$s();
        $function$, kind.name, kind.tables, format(counted, kind.changed), kind.cleared);
    END LOOP;
    -- Counts hours again from the rows.
    EXECUTE format($function$
        CREATE FUNCTION serving.recount(from_hour bigint, to_hour bigint) RETURNS void
            LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
        DECLARE
            since CONSTANT bigint := (SELECT since_hour FROM serving.coverage);
        BEGIN
            PERFORM pg_advisory_xact_lock(7316201945);
            DELETE FROM serving.sums WHERE grain = 'hour' AND start BETWEEN from_hour AND to_hour
                                        OR grain = 'minute' AND start BETWEEN from_hour * 60 AND to_hour * 60 + 59;
            DELETE FROM serving.histograms AS t WHERE t.hour BETWEEN from_hour AND to_hour;
            %1$s
        END
        $body$;
    $function$, format(counted, 'SELECT 1 AS sign, r.* FROM serving.views AS r WHERE r.hour BETWEEN from_hour AND to_hour'));
END
$do$;

-- Of these customers' hours those of which the sums are not what the rollups say, by client.
CREATE FUNCTION serving.differing(hours bigint[], customers text[]) RETURNS TABLE (hour bigint, customer_id text)
    LANGUAGE sql STABLE SET search_path = pg_catalog AS $$
    WITH wanted AS (
        SELECT DISTINCT w.hour, w.customer_id FROM unnest(hours, customers) AS w (hour, customer_id)
    ), buckets AS (
        SELECT h.hour, h.customer_id, h.source, h.metric,
               array_agg(h.bucket ORDER BY h.bucket) AS buckets, array_agg(h.count ORDER BY h.bucket) AS counts
        FROM wanted AS w JOIN serving.histograms AS h ON h.hour = w.hour AND h.customer_id = w.customer_id
        GROUP BY h.hour, h.customer_id, h.source, h.metric
    ), hot AS (
        SELECT s.start AS hour, s.customer_id, s.source, s.views, s.started, s.startup_failures, s.playback_failures,
               s.exits_before_start, s.views_dropped, s.watch_ms, s.playing_ms, s.rebuffer_count, s.rebuffer_ms, s.seek_count,
               s.seek_ms, s.bitrate_integral, s.bitrate_time_ms, s.beacons, s.duplicates,
               coalesce(b.buckets, '{}'), coalesce(b.counts, '{}'), coalesce(r.buckets, '{}'), coalesce(r.counts, '{}')
        FROM wanted AS w
        JOIN serving.sums AS s ON s.grain = 'hour' AND s.start = w.hour AND s.customer_id = w.customer_id
        LEFT JOIN buckets AS b ON b.hour = w.hour AND b.customer_id = w.customer_id AND b.source = s.source
                              AND b.metric = 'startup_ms'
        LEFT JOIN buckets AS r ON r.hour = w.hour AND r.customer_id = w.customer_id AND r.source = s.source
                              AND r.metric = 'rebuffer_ms'
    ), warehouse AS (
        SELECT w.hour, g.customer_id, g.members[1], g.views, g.started, g.startup_failures, g.playback_failures,
               g.exits_before_start, g.views_dropped, g.watch_ms, g.playing_ms, g.rebuffer_count, g.rebuffer_ms, g.seek_count,
               g.seek_ms, g.bitrate_integral, g.bitrate_time_ms, g.beacons, g.duplicates,
               g.startup_ms_buckets, g.startup_ms_counts, g.rebuffer_ms_buckets, g.rebuffer_ms_counts
        FROM wanted AS w
        JOIN serving.rollups AS g ON g.customer_id = w.customer_id AND g.dimensions = 'source' AND g.grain = 'hour'
                                 AND g.start = to_timestamp(w.hour * 3600)
    )
    SELECT DISTINCT d.hour, d.customer_id
    FROM ((TABLE hot EXCEPT TABLE warehouse) UNION ALL (TABLE warehouse EXCEPT TABLE hot)) AS d
$$;

-- Of these customers' hours the rollups are read from now on, where they say what the sums say.
CREATE FUNCTION serving.settle(hours bigint[], customers text[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7316201945);
    DELETE FROM serving.hot_slices AS t USING (
        SELECT w.hour, w.customer_id FROM unnest(hours, customers) AS w (hour, customer_id)
        EXCEPT SELECT d.hour, d.customer_id FROM serving.differing(hours, customers) AS d
    ) AS same
        WHERE t.hour = same.hour AND t.customer_id = same.customer_id;
END
$$;

-- Views are kept that count from this hour on; null: none. Of hours before it the rollups are read. Their rows are not deleted here.
CREATE FUNCTION serving.keep_from(first_hour bigint) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    former bigint;
BEGIN
    -- In the order in which a reader of the topic takes them.
    PERFORM FROM serving.positions FOR UPDATE;
    PERFORM pg_advisory_xact_lock(7316201945);
    former := (SELECT since_hour FROM serving.coverage);
    IF first_hour IS NULL OR former IS NULL THEN
        -- What was read while none were kept is missing: topic views is read again.
        DELETE FROM serving.positions;
        UPDATE serving.coverage SET since_hour = first_hour, is_whole = false;
    ELSE
        -- Hours that are gone do not come back.
        UPDATE serving.coverage SET since_hour = greatest(former, first_hour);
    END IF;
    DELETE FROM serving.sums AS t USING serving.coverage AS c
        WHERE c.since_hour IS NULL OR t.grain = 'hour' AND t.start < c.since_hour
           OR t.grain = 'minute' AND t.start < c.since_hour * 60;
    DELETE FROM serving.histograms AS t USING serving.coverage AS c WHERE c.since_hour IS NULL OR t.hour < c.since_hour;
    DELETE FROM serving.hot_slices AS t USING serving.coverage AS c WHERE c.since_hour IS NULL OR t.hour < c.since_hour;
END
$$;

-- When the page's figures were last brought up to date: by the finalizer, or by a reader of topic views.
CREATE OR REPLACE VIEW serving.published AS
    SELECT greatest(f.published_at, (
        SELECT max(p.landed_at) FROM serving.positions AS p, serving.coverage AS c WHERE c.is_whole
    )) AS published_at
    FROM finalizer.fence AS f;
