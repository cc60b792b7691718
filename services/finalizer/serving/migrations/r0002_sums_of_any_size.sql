-- Sums of what clients claim: a view's value fits 64 bits, a slice's sum need not.

ALTER TABLE serving.rollups_hourly
    ALTER COLUMN watch_ms        TYPE numeric,
    ALTER COLUMN playing_ms      TYPE numeric,
    ALTER COLUMN rebuffer_count  TYPE numeric,
    ALTER COLUMN rebuffer_ms     TYPE numeric,
    ALTER COLUMN seek_count      TYPE numeric,
    ALTER COLUMN seek_ms         TYPE numeric,
    ALTER COLUMN bitrate_time_ms TYPE numeric,
    ALTER COLUMN beacons         TYPE numeric,
    ALTER COLUMN duplicates      TYPE numeric;
