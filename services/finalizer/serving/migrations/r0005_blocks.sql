-- Totals of blocks of 1, 2, 4 ... 8192 hours, each the sum of two of half its length: any hour up to now is a few blocks.

-- Block b of level n holds the hours (since 1970) from b * 2^n on, 2^n of them; the newest blocks are not full yet.
CREATE TABLE serving.blocks (
    level              smallint NOT NULL CHECK (level BETWEEN 0 AND 13),
    block              bigint   NOT NULL,
    customer_id        text     NOT NULL,
    views              bigint   NOT NULL,
    started            bigint   NOT NULL,
    startup_failures   bigint   NOT NULL,
    playback_failures  bigint   NOT NULL,
    exits_before_start bigint   NOT NULL,
    watch_ms           numeric  NOT NULL,
    playing_ms         numeric  NOT NULL,
    rebuffer_ms        numeric  NOT NULL,
    bitrate_integral   numeric  NOT NULL,
    bitrate_time_ms    numeric  NOT NULL,
    startup_ms_buckets int[]    NOT NULL,
    startup_ms_counts  bigint[] NOT NULL,
    PRIMARY KEY (level, block, customer_id)
);

-- Computes again the blocks that these customers' hours are in, the short ones first. In the transaction that changes the hours.
CREATE FUNCTION finalizer.refresh_blocks(dirty_hours bigint[], dirty_customers text[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    DELETE FROM serving.blocks AS t USING unnest(dirty_hours, dirty_customers) AS d (hour, customer_id)
        WHERE t.level = 0 AND t.block = d.hour AND t.customer_id = d.customer_id;
    INSERT INTO serving.blocks
        SELECT 0, d.hour, r.customer_id, r.views, r.started, r.startup_failures, r.playback_failures,
               r.exits_before_start, r.watch_ms, r.playing_ms, r.rebuffer_ms, r.bitrate_integral, r.bitrate_time_ms,
               r.startup_ms_buckets, r.startup_ms_counts
        FROM (SELECT DISTINCT * FROM unnest(dirty_hours, dirty_customers)) AS d (hour, customer_id)
        JOIN serving.rollups AS r ON r.customer_id = d.customer_id AND r.dimensions = '' AND r.grain = 'hour'
                                 AND r.start = to_timestamp(d.hour * 3600);
    FOR n IN 1..13 LOOP
        DELETE FROM serving.blocks AS t USING unnest(dirty_hours, dirty_customers) AS d (hour, customer_id)
            WHERE t.level = n AND t.block = d.hour >> n AND t.customer_id = d.customer_id;
        INSERT INTO serving.blocks
            WITH parents AS (
                SELECT DISTINCT d.hour >> n AS block, d.customer_id
                FROM unnest(dirty_hours, dirty_customers) AS d (hour, customer_id)
            ), halves AS MATERIALIZED (
                SELECT p.block AS parent, half.*
                FROM parents AS p, LATERAL (
                    SELECT * FROM serving.blocks AS t
                    WHERE t.level = n - 1 AND t.block IN (2 * p.block, 2 * p.block + 1) AND t.customer_id = p.customer_id
                ) AS half
            ), counts AS (
                SELECT h.parent, h.customer_id, one.bucket, sum(one.count)::bigint AS count
                FROM halves AS h, unnest(h.startup_ms_buckets, h.startup_ms_counts) AS one (bucket, count)
                GROUP BY h.parent, h.customer_id, one.bucket
            ), histograms AS (
                SELECT c.parent, c.customer_id, array_agg(c.bucket ORDER BY c.bucket) AS buckets,
                       array_agg(c.count ORDER BY c.bucket) AS counts
                FROM counts AS c GROUP BY c.parent, c.customer_id
            ), sums AS (
                SELECT h.parent, h.customer_id, sum(h.views)::bigint AS views, sum(h.started)::bigint AS started,
                       sum(h.startup_failures)::bigint AS startup_failures,
                       sum(h.playback_failures)::bigint AS playback_failures,
                       sum(h.exits_before_start)::bigint AS exits_before_start, sum(h.watch_ms) AS watch_ms,
                       sum(h.playing_ms) AS playing_ms,
                       sum(h.rebuffer_ms) AS rebuffer_ms, sum(h.bitrate_integral) AS bitrate_integral,
                       sum(h.bitrate_time_ms) AS bitrate_time_ms
                FROM halves AS h GROUP BY h.parent, h.customer_id
            )
            SELECT n, s.parent, s.customer_id, s.views, s.started, s.startup_failures, s.playback_failures,
                   s.exits_before_start, s.watch_ms, s.playing_ms, s.rebuffer_ms, s.bitrate_integral, s.bitrate_time_ms,
                   coalesce(i.buckets, '{}'), coalesce(i.counts, '{}')
            FROM sums AS s LEFT JOIN histograms AS i ON i.parent = s.parent AND i.customer_id = s.customer_id;
    END LOOP;
END
$$;

-- What is published already.
SELECT finalizer.refresh_blocks(array_agg(extract(epoch FROM start)::bigint / 3600), array_agg(customer_id))
    FROM serving.rollups WHERE grain = 'hour' AND dimensions = '' GROUP BY customer_id;
