import java.util.HashMap;
import java.util.Map;

/** What each attribute of mux-embed means: the field of the row, by kind (names as in services/processor/.../beacons/mux.py). */
final class Names {
    enum Kind {
        COUNTER,
        REAL,
        TEXT,
        NUMBER,
        CUSTOM,
        BITRATE,
        IS_LIVE,
        STREAM_TYPE,
        RANGES,
        AUTOPLAY,
        PRELOAD,
        PROGRAM_TIME,
        EDGE_TIME,
        ERROR_CODE,
        ERROR_MESSAGE,
        ERROR_CONTEXT,
        ERROR_SEVERITY,
        ERROR_BUSINESS,
        REQUEST
    }

    /** Where an attribute goes: `at` is the index of the field among those of its kind; texts are cut at `charactersMax`. */
    record Field(Kind kind, int at, int charactersMax) {}

    static final String[] COUNTERS = {
        "view_start_ms", "startup_ms", "content_startup_ms", "aggregate_startup_ms", "watch_ms", "playing_ms",
        "content_playback_ms", "rebuffer_count", "rebuffer_ms", "seek_count", "seek_ms", "max_seek_ms",
        "max_playhead_ms", "scale_time_ms", "player_startup_ms", "player_view_count", "page_load_ms", "dropped_frames",
        "ad_playing_ms",
    };
    private static final String[] COUNTER_ATTRIBUTES = {
        "view_start", "view_time_to_first_frame", "view_content_startup_time", "view_aggregate_startup_time",
        "view_watch_time", "view_playing_time_ms_cumulative", "view_content_playback_time", "view_rebuffer_count",
        "view_rebuffer_duration", "view_seek_count", "view_seek_duration", "view_max_seek_time",
        "view_max_playhead_position", "view_total_content_playback_time", "player_startup_time", "player_view_count",
        "page_load_time", "view_dropped_frame_count", "ad_playing_time_ms_cumulative",
    };
    static final String[] REALS = {"upscale_integral", "downscale_integral", "max_upscale", "max_downscale"};
    private static final String[] REAL_ATTRIBUTES = {
        "view_total_upscaling", "view_total_downscaling", "view_max_upscale_percentage",
        "view_max_downscale_percentage",
    };
    static final String[] TEXTS = {
        "session_id", "viewer_id", "viewer_user_id", "player_instance_id", "video_id", "video_title", "video_series",
        "source_url", "source_host", "cdn", "player_name", "player_software", "player_version", "device", "os",
        "browser", "connection", "page_url", "sub_property", "experiment", "stream_type", "preload", "country",
    };
    private static final String[] TEXT_ATTRIBUTES = {
        "session_id", "mux_viewer_id", "viewer_user_id", "player_instance_id", "video_id", "video_title",
        "video_series", "video_source_url", "video_source_hostname", "video_cdn", "player_name", "player_software",
        "player_software_version", "viewer_device_name", "viewer_os_family", "viewer_application_name",
        "viewer_connection_type", "page_url", "sub_property_id", "experiment_name",
    };
    static final String[] NUMBERS = {"video_duration_ms", "player_width", "player_height", "asn"};
    private static final String[] NUMBER_ATTRIBUTES = {"video_source_duration", "player_width", "player_height"};
    static final String[] REQUESTS = {
        "request_start", "request_response_start", "request_response_end", "request_bytes_loaded",
    };

    static final int VIEW_START = 0;
    static final int STARTUP = 1;
    static final int CONTENT_STARTUP = 2;
    static final int AGGREGATE_STARTUP = 3;
    static final int WATCH = 4;
    static final int PLAYING = 5;
    static final int CONTENT_PLAYBACK = 6;
    static final int REBUFFER_COUNT = 7;
    static final int REBUFFER = 8;
    static final int SEEK_COUNT = 9;
    static final int SEEK = 10;
    static final int MAX_SEEK = 11;
    static final int MAX_PLAYHEAD = 12;
    static final int SCALE_TIME = 13;
    static final int PLAYER_STARTUP = 14;
    static final int PLAYER_VIEW_COUNT = 15;
    static final int PAGE_LOAD = 16;
    static final int DROPPED_FRAMES = 17;
    static final int CDN = 9;
    static final int DEVICE = 13;
    static final int OS = 14;
    static final int BROWSER = 15;
    static final int STREAM_TYPE = 20;
    static final int PRELOAD = 21;
    static final int COUNTRY = 22;
    static final int ASN = 3;
    static final int PLAYER_VERSION = 12;
    static final int VIDEO_TITLE = 5;

    private static final int TEXT_MAX = 500;
    private static final int LONG_TEXT_MAX = 2_000;
    private static final int NAME_MAX = 100;
    private static final Map<String, Field> FIELDS = fields();

    private Names() {}

    /** The field of an attribute, or null if it means nothing. */
    static Field of(String attribute) {
        return FIELDS.get(attribute);
    }

    private static Map<String, Field> fields() {
        Map<String, Field> found = new HashMap<>();
        put(found, Kind.COUNTER, COUNTER_ATTRIBUTES);
        put(found, Kind.REAL, REAL_ATTRIBUTES);
        put(found, Kind.NUMBER, NUMBER_ATTRIBUTES);
        put(found, Kind.REQUEST, REQUESTS);
        for (int at = 0; at < TEXT_ATTRIBUTES.length; at++) {
            found.put(TEXT_ATTRIBUTES[at], new Field(Kind.TEXT, at, charactersMax(TEXTS[at])));
        }
        found.put("player_software_name", found.get("player_software"));
        for (int number = 1; number <= 20; number++) {
            found.put("custom_" + number, new Field(Kind.CUSTOM, number, TEXT_MAX));
        }
        found.put("video_source_bitrate", new Field(Kind.BITRATE, 0, 0));
        found.put("video_source_is_live", new Field(Kind.IS_LIVE, 0, 0));
        found.put("video_stream_type", new Field(Kind.STREAM_TYPE, 0, 0));
        found.put("video_playback_range", new Field(Kind.RANGES, 0, 4_000));
        found.put("player_autoplay_on", new Field(Kind.AUTOPLAY, 0, 0));
        found.put("player_preload_on", new Field(Kind.PRELOAD, 0, 0));
        found.put("player_program_time", new Field(Kind.PROGRAM_TIME, 0, 0));
        found.put("player_live_edge_program_time", new Field(Kind.EDGE_TIME, 0, 0));
        found.put("player_error_code", new Field(Kind.ERROR_CODE, 0, TEXT_MAX));
        found.put("player_error_message", new Field(Kind.ERROR_MESSAGE, 1, LONG_TEXT_MAX));
        found.put("player_error_context", new Field(Kind.ERROR_CONTEXT, 2, LONG_TEXT_MAX));
        found.put("player_error_severity", new Field(Kind.ERROR_SEVERITY, 3, TEXT_MAX));
        found.put("player_error_business_exception", new Field(Kind.ERROR_BUSINESS, 0, 0));
        return found;
    }

    private static int charactersMax(String field) {
        return switch (field) {
            case "source_url", "page_url" -> LONG_TEXT_MAX;
            case "cdn" -> NAME_MAX;
            default -> TEXT_MAX;
        };
    }

    private static void put(Map<String, Field> found, Kind kind, String[] attributes) {
        for (int at = 0; at < attributes.length; at++) {
            found.put(attributes[at], new Field(kind, at, 0));
        }
    }
}
