-- Of the minutes that are old enough for pairs to go, nearly all are of single dimensions, which stay for longer.
CREATE INDEX live_pairs_by_minute ON serving.live_minutes (minute) WHERE position(',' IN dimension) > 0;

-- Views are kept that count from this hour on; null: none. Of hours before it the rollups are read. Their rows are not deleted here.
CREATE OR REPLACE FUNCTION serving.keep_from(first_hour bigint) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    former bigint;
BEGIN
    -- In the order in which a reader of the topic takes them.
    PERFORM FROM serving.positions FOR UPDATE;
    PERFORM pg_advisory_xact_lock(7316201945);
    former := (SELECT since_hour FROM serving.coverage);
    IF first_hour IS NULL OR former IS NULL OR first_hour < former - 24 THEN
        -- What was read while none were kept, or only later ones, is missing: topic views is read again.
        DELETE FROM serving.positions;
        UPDATE serving.coverage SET since_hour = first_hour, is_whole = false;
        IF first_hour < former THEN
            -- Rows that are still here do not come as new ones.
            PERFORM serving.recount(first_hour, former - 1);
        END IF;
    ELSE
        -- Hours that are gone do not come back: clocks of two machines differ, and to read the topic again costs much.
        UPDATE serving.coverage SET since_hour = greatest(former, first_hour);
    END IF;
    DELETE FROM serving.sums AS t USING serving.coverage AS c
        WHERE c.since_hour IS NULL OR t.grain = 'hour' AND t.start < c.since_hour
           OR t.grain = 'minute' AND t.start < c.since_hour * 60;
    DELETE FROM serving.histograms AS t USING serving.coverage AS c WHERE c.since_hour IS NULL OR t.hour < c.since_hour;
    DELETE FROM serving.hot_slices AS t USING serving.coverage AS c WHERE c.since_hour IS NULL OR t.hour < c.since_hour;
END
$$;
