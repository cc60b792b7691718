import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/** The row of a finished view, field by field as docs/view.md defines it for a client that counts for itself. */
final class Row {
    private static final long DAY_MS = 86_400_000;
    private static final long LONG_REBUFFER_MS = 300_000;
    private static final int RANGES_MAX = 100;
    private static final String[] EVENTS = new String[23];

    static {
        EVENTS[View.STARTING] = "viewstart";
        EVENTS[View.PLAYING] = "playing";
        EVENTS[View.PAUSED] = "pause";
        EVENTS[View.REBUFFERING] = "rebufferstart";
        EVENTS[View.SEEKING] = "seekstart";
        EVENTS[View.ENDED] = "ended";
        EVENTS[View.FAILED] = "error";
        EVENTS[20] = "rendition";
        EVENTS[21] = "error";
        EVENTS[22] = "warning";
    }

    final boolean playbackFailed;
    final boolean startupFailed;
    final boolean ebvs;
    final long watchMs;
    final long rebufferMs;
    /** Whether it was good; null: no verdict. */
    final Boolean isGood;

    private final View view;
    private final long startupMs;
    private final boolean hasStarted;
    private final long rebufferCount;
    private final long averageBitrateBps;
    private final String endReason;

    Row(View view) {
        this.view = view;
        long[] counters = view.counters;
        startupMs = counters[Names.STARTUP];
        hasStarted = startupMs >= 0 || view.hasPlayed || counters[Names.REBUFFER_COUNT] > 0;
        watchMs = Math.max(0, counters[Names.WATCH]);
        rebufferCount = Math.max(0, counters[Names.REBUFFER_COUNT]);
        rebufferMs = Math.max(0, counters[Names.REBUFFER]);
        playbackFailed = view.isFatal && !view.isBusiness;
        startupFailed = playbackFailed && !hasStarted;
        ebvs = !hasStarted && !view.isFatal;
        averageBitrateBps = view.bitrateTimeMs > 0 ? view.bitrateIntegral / view.bitrateTimeMs : -1;
        int lastSeen = view.state == View.ENDED ? view.stateBeforeEnd : view.state;
        boolean isLong = lastSeen == View.REBUFFERING && Math.max(view.rebufferMs, rebufferMs) >= LONG_REBUFFER_MS;
        String open = view.isFatal ? "error" : "timeout";
        endReason = isLong ? "long_rebuffer" : view.ended != 0 ? "clean" : open;
        isGood = verdict();
    }

    private Boolean verdict() {
        if (playbackFailed) {
            return false;
        }
        if (ebvs) {
            return watchMs >= 2_000 ? false : null;
        }
        if (startupMs < 0) {
            return null;
        }
        boolean isFast = averageBitrateBps < 0 || averageBitrateBps >= 500_000;
        return startupMs <= 4_000 && rebufferMs <= 0.02 * watchMs && isFast;
    }

    byte[] json(JsonFactory json, String customerId, String viewId, Dimensions dimensions) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(2_048);
        try (JsonGenerator out = json.createGenerator(bytes)) {
            out.writeStartObject();
            writeHead(out, customerId, viewId);
            writeDimensions(out, dimensions);
            writeStart(out);
            writePlayed(out);
            writeScores(out);
            writeRequests(out);
            writeDifferences(out);
            writeErrors(out);
            writeLists(out, json);
            if (view.latencyCount > 0 && !"vod".equals(dimensions.texts[Names.STREAM_TYPE])) {
                long meanMs = Math.floorDiv(view.latencySumMs, view.latencyCount) + view.offsetMs;
                out.writeNumberField("live_latency_ms_avg", Math.max(0, meanMs));
            }
            out.writeEndObject();
        }
        return bytes.toByteArray();
    }

    private long begunMs() {
        return view.counters[Names.VIEW_START] > 0 ? view.counters[Names.VIEW_START] : view.begunAtMs;
    }

    private void writeHead(JsonGenerator out, String customerId, String viewId) throws IOException {
        out.writeNumberField("schema_version", 1);
        out.writeNumberField("revision", view.revision);
        out.writeStringField("customer_id", customerId);
        out.writeStringField("view_id", viewId);
        out.writeStringField("source", "mux");
        out.writeNumberField("day", view.firstAppendMs / DAY_MS);
        out.writeNumberField("first_append_ms", view.firstAppendMs);
        out.writeNumberField("last_append_ms", view.lastAppendMs);
        out.writeNumberField("view_start_ms", begunMs() + view.offsetMs);
        out.writeNumberField("view_end_ms", view.lastAtMs + view.offsetMs);
        out.writeStringField("end_reason", endReason);
        out.writeBooleanField("view_dropped", endReason.equals("timeout") || endReason.equals("long_rebuffer"));
        out.writeNumberField("beacon_count", view.beacons);
        number(out, "duplicate_count", view.duplicates, 0);
        number(out, "seq_gaps", view.missing, 0);
        number(out, "gap_ms", view.gapMs, 0);
        number(out, "gap_count", view.gapCount, 0);
        flag(out, "complete", view.ended != 0 && view.missing == 0);
    }

    private static void writeDimensions(JsonGenerator out, Dimensions dimensions) throws IOException {
        for (int at = 0; at < Names.TEXTS.length; at++) {
            if (dimensions.texts[at] != null) {
                out.writeStringField(Names.TEXTS[at], dimensions.texts[at]);
            }
        }
        for (int at = 0; at < Names.NUMBERS.length; at++) {
            number(out, Names.NUMBERS[at], dimensions.numbers[at], -1);
        }
        if (dimensions.autoplay != null) {
            out.writeBooleanField("autoplay", dimensions.autoplay);
        }
        flag(out, "is_bot", dimensions.isBot);
        if (!dimensions.custom.isEmpty()) {
            out.writeObjectFieldStart("custom");
            for (var one : dimensions.custom.entrySet()) {
                out.writeStringField("custom_" + one.getKey(), one.getValue());
            }
            out.writeEndObject();
        }
    }

    private void writeStart(JsonGenerator out) throws IOException {
        long[] counters = view.counters;
        number(out, "startup_ms", startupMs, -1);
        if (startupMs < 0) {
            out.writeStringField("startup_unknown", hasStarted ? "first_frame_lost" : "not_started");
            if (hasStarted) {
                long playedMs = view.hasPlayed ? view.playedAtMs : view.atMs;
                long mostMs = playedMs - view.begunAtMs - view.gapMsBeforePlay;
                out.writeNumberField("startup_ms_max", Math.min(Math.max(0, mostMs), DAY_MS));
            }
        }
        long contentMs = counters[Names.CONTENT_STARTUP];
        number(out, "content_startup_ms", contentMs >= 0 ? contentMs : startupMs, -1);
        long playerMs = counters[Names.PLAYER_STARTUP];
        long pageMs = counters[Names.PAGE_LOAD];
        number(out, "player_startup_ms", playerMs, -1);
        number(out, "page_load_ms", pageMs, -1);
        long allMs = counters[Names.AGGREGATE_STARTUP];
        boolean isFirst = counters[Names.PLAYER_VIEW_COUNT] < 0 || counters[Names.PLAYER_VIEW_COUNT] == 1;
        if (allMs < 0 && isFirst && pageMs >= 0 && playerMs >= 0 && startupMs >= 0) {
            allMs = pageMs + playerMs + startupMs;
        }
        number(out, "aggregate_startup_ms", allMs, -1);
    }

    private void writePlayed(JsonGenerator out) throws IOException {
        long[] counters = view.counters;
        number(out, "watch_ms", watchMs, 0);
        for (int at : new int[] {
            Names.PLAYING, Names.CONTENT_PLAYBACK, Names.MAX_PLAYHEAD, Names.SEEK_COUNT, Names.SEEK, Names.MAX_SEEK,
        }) {
            number(out, Names.COUNTERS[at], Math.max(0, counters[at]), 0);
        }
        number(out, "ad_playing_ms", Math.max(0, counters[Names.COUNTERS.length - 1]), 0);
        number(out, "dropped_frames", counters[Names.DROPPED_FRAMES], -1);
        number(out, "scale_time_ms", counters[Names.SCALE_TIME], -1);
        for (int at = 0; at < Names.REALS.length; at++) {
            if (view.reals[at] >= 0) {
                out.writeNumberField(Names.REALS[at], view.reals[at]);
            }
        }
        number(out, "rebuffer_count", rebufferCount, 0);
        number(out, "rebuffer_ms", rebufferMs, 0);
        out.writeStringField("rebuffer_source", "counters");
        if (watchMs > 0) {
            out.writeNumberField("rebuffer_fraction", Math.min(1.0, (double) rebufferMs / watchMs));
        }
        long activeMs = rebufferMs + Math.max(0, counters[Names.PLAYING]);
        if (activeMs > 0) {
            out.writeNumberField("rebuffer_ratio", (double) rebufferMs / activeMs);
        }
        number(out, "bitrate_integral", view.bitrateIntegral, 0);
        number(out, "bitrate_time_ms", view.bitrateTimeMs, 0);
        number(out, "avg_bitrate_bps", averageBitrateBps, -1);
        number(out, "rendition_up", view.renditionUp, 0);
        number(out, "rendition_down", view.renditionDown, 0);
    }

    private void writeScores(JsonGenerator out) throws IOException {
        out.writeNumberField("score_version", 1);
        List<Double> parts = new ArrayList<>();
        if (!ebvs && startupMs >= 0) {
            parts.add(score(out, "score_startup", 8 / (8 + startupMs / 1000.0) * 100));
        }
        if (!ebvs && hasStarted) {
            double byCount = 100 / Math.sqrt(1 + Math.pow(rebufferCount / 2.0, 2));
            double byShare = watchMs > 0 ? 100 * Math.exp(-10 * Math.min((double) rebufferMs / watchMs, 1.0)) : 100;
            parts.add(score(out, "score_smooth", (byCount + byShare) / 2));
        }
        long scaledMs = view.counters[Names.SCALE_TIME];
        if (!ebvs && scaledMs > 0 && view.reals[0] >= 0) {
            double mean = view.reals[0] / scaledMs;
            double most = Math.max(0, view.reals[2]);
            parts.add(score(out, "score_quality", 100 * Math.exp(-0.33 * (0.15 * most + 0.85 * mean))));
        }
        double success = playbackFailed ? 0 : ebvs ? (watchMs >= 1_000 ? 50 : -1) : hasStarted ? 100 : -1;
        if (success >= 0) {
            out.writeNumberField("score_success", success);
            score(out, "score_view", success / 100 * mean(parts));
        }
        if (isGood != null) {
            out.writeBooleanField("spi_good", isGood);
        }
    }

    private static double mean(List<Double> parts) {
        if (parts.size() < 2) {
            return parts.isEmpty() ? 100 : parts.get(0);
        }
        double sum = 0;
        int pairs = 0;
        for (int at = 0; at < parts.size(); at++) {
            for (int other = at + 1; other < parts.size(); other++) {
                sum += Math.sqrt(parts.get(at) * parts.get(other));
                pairs++;
            }
        }
        return sum / pairs;
    }

    private static double score(JsonGenerator out, String name, double value) throws IOException {
        out.writeNumberField(name, new BigDecimal(value).setScale(2, RoundingMode.HALF_EVEN).doubleValue());
        return value;
    }

    private void writeRequests(JsonGenerator out) throws IOException {
        if (view.hasRequests) {
            String[] names = {
                "req_count", "req_failed", "req_canceled", "req_bytes", "req_time_ms", "ttfb_sum_ms", "ttfb_max_ms",
            };
            for (int at = 0; at < names.length; at++) {
                number(out, names[at], view.requests[at], -1);
            }
        }
    }

    private void writeDifferences(JsonGenerator out) throws IOException {
        long[] counters = view.counters;
        difference(out, "watch_difference_ms", counters[Names.WATCH], view.watchMs);
        difference(out, "playing_difference_ms", counters[Names.PLAYING], view.playingMs);
        difference(out, "rebuffer_difference_ms", counters[Names.REBUFFER], view.rebufferMs);
        difference(out, "rebuffer_count_difference", counters[Names.REBUFFER_COUNT], view.rebufferCount);
    }

    private static void difference(JsonGenerator out, String name, long counted, long integrated) throws IOException {
        if (counted >= 0) {
            out.writeNumberField(name, counted - integrated);
        }
    }

    private void writeErrors(JsonGenerator out) throws IOException {
        flag(out, "playback_failed", playbackFailed);
        flag(out, "startup_failed", startupFailed);
        flag(out, "ebvs", ebvs);
        if (view.isFatal && view.hasFailure) {
            String[] names = {"error_code", "error_message", "error_context", "error_severity"};
            for (int at = 0; at < names.length; at++) {
                if (view.error[at] != null) {
                    out.writeStringField(names[at], view.error[at]);
                }
            }
            flag(out, "business_exception", view.isBusiness);
        }
    }

    private void writeLists(JsonGenerator out, JsonFactory json) throws IOException {
        TreeSet<String> measured = new TreeSet<>();
        for (int at = 0; at < Names.COUNTERS.length; at++) {
            if (view.counters[at] >= 0 && at != Names.PLAYER_VIEW_COUNT) {
                measured.add(Names.COUNTERS[at]);
            }
        }
        for (int at = 0; at < Names.REALS.length; at++) {
            if (view.reals[at] >= 0) {
                measured.add(Names.REALS[at]);
            }
        }
        if (view.ranges != null) {
            measured.add("playback_ranges");
            writeRanges(out, json);
        }
        strings(out, "player_measured", measured);
        strings(out, "cdn_trace", view.cdns);
        if (!view.timeline.isEmpty()) {
            out.writeArrayFieldStart("events");
            for (View.Event event : view.timeline) {
                out.writeStartObject();
                out.writeNumberField("at_ms", event.atMs() - begunMs());
                out.writeStringField("event", EVENTS[event.code()]);
                number(out, "playhead_ms", event.playheadMs(), 0);
                number(out, "bitrate_bps", event.bitrateBps(), 0);
                out.writeEndObject();
            }
            out.writeEndArray();
        }
    }

    /** `["0:2900", "5000:6000"]` as pairs of ms. */
    private void writeRanges(JsonGenerator out, JsonFactory json) throws IOException {
        out.writeArrayFieldStart("playback_ranges");
        try (JsonParser parser = json.createParser(view.ranges)) {
            parser.nextToken();
            for (int left = RANGES_MAX; left > 0 && parser.nextToken() == JsonToken.VALUE_STRING; left--) {
                String[] ends = parser.getText().split(":");
                out.writeStartArray();
                out.writeNumber(Long.parseLong(ends[0]));
                out.writeNumber(Long.parseLong(ends[1]));
                out.writeEndArray();
            }
        }
        out.writeEndArray();
    }

    private static void strings(JsonGenerator out, String name, Iterable<String> values) throws IOException {
        if (values.iterator().hasNext()) {
            out.writeArrayFieldStart(name);
            for (String value : values) {
                out.writeString(value);
            }
            out.writeEndArray();
        }
    }

    private static void number(JsonGenerator out, String name, long value, long omitted) throws IOException {
        if (value != omitted) {
            out.writeNumberField(name, value);
        }
    }

    private static void flag(JsonGenerator out, String name, boolean value) throws IOException {
        if (value) {
            out.writeBooleanField(name, true);
        }
    }
}
