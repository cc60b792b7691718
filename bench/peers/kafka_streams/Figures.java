/** Live figures of a customer, or of one cohort of it, in the open bucket of 5 s: gauges first, then counts. */
final class Figures implements Wire.Stored {
    static final String[] NAMES = {
        "viewers_now", "rebuffering_now", "bitrate_bps_now", "bitrate_viewers_now", "views_finished",
        "playback_failures", "startup_failures", "exits_before_start", "views_started", "startups", "startup_ms",
        "failures", "finished_watch_ms", "finished_rebuffer_ms", "finished_rated", "finished_bad", "open_now",
        "beacons", "duplicates", "dropped", "late", "views_revised",
    };
    /** How many of them a slice has; the rest is the customer's alone. */
    static final int OF_SLICE = 16;
    static final int VIEWERS = 0;
    static final int REBUFFERING = 1;
    static final int BITRATE = 2;
    static final int BITRATE_VIEWERS = 3;
    static final int FINISHED = 4;
    static final int PLAYBACK_FAILURES = 5;
    static final int STARTUP_FAILURES = 6;
    static final int EXITS = 7;
    static final int STARTED = 8;
    static final int STARTUPS = 9;
    static final int STARTUP_MS = 10;
    static final int FAILURES = 11;
    static final int FINISHED_WATCH = 12;
    static final int FINISHED_REBUFFER = 13;
    static final int FINISHED_RATED = 14;
    static final int FINISHED_BAD = 15;
    static final int OPEN = 16;
    static final int BEACONS = 17;
    static final int DUPLICATES = 18;
    static final int DROPPED = 19;
    static final int REVISED = 21;

    private static final int GAUGES = 4;

    long bucketMs;
    long activeMs;
    long cohorts;
    final long[] values = new long[NAMES.length];

    /** Begins another bucket: its counts are 0. */
    void begin(long newBucketMs) {
        if (bucketMs != newBucketMs) {
            bucketMs = newBucketMs;
            for (int at = GAUGES; at < values.length; at++) {
                values[at] = at == OPEN ? values[at] : 0;
            }
        }
    }

    @Override
    public void write(Wire.Writer out) {
        out.number(bucketMs).number(activeMs).number(cohorts);
        for (long value : values) {
            out.number(value);
        }
    }

    static Figures read(Wire.Reader in) {
        Figures found = new Figures();
        found.bucketMs = in.number();
        found.activeMs = in.number();
        found.cohorts = in.number();
        for (int at = 0; at < found.values.length; at++) {
            found.values[at] = in.number();
        }
        return found;
    }
}
