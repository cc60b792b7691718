import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.Arrays;
import java.util.TreeMap;

/** One beacon of mux-embed as the collector writes it, with the meaning of its attributes. Times in ms; -1 is "not given". */
final class Beacon {
    private static final long NUMBER_MAX = 9_000_000_000_000L;
    private static final long BITRATE_MAX = 10_000_000_000L;
    private static final long BEHIND_EDGE_MS_MAX = 300_000;
    private static final int CUSTOM_MAX = 20;

    String customerId = "";
    String viewId = "";
    String event = "";
    String sourceEvent = "";
    long seq = -1;
    long clientTimeMs;
    long clockOffsetMs;
    boolean hasClockOffset;
    long playheadMs = -1;
    final long[] counters = new long[Names.COUNTERS.length];
    final double[] reals = new double[Names.REALS.length];
    boolean hasCounters;
    String ranges;
    /** Of texts and numbers: whether the beacon gives one; a text may be null. */
    final String[] texts = new String[Names.TEXTS.length];
    final boolean[] given = new boolean[Names.TEXTS.length];
    final long[] numbers = new long[Names.NUMBERS.length];
    Boolean autoplay;
    TreeMap<Integer, String> custom;
    boolean hasDimensions;
    long bitrateBps;
    long programMs = -1;
    long edgeMs;
    final String[] error = new String[4];
    boolean isBusiness;
    final long[] request = new long[Names.REQUESTS.length];
    String country;
    String browser;
    String os;
    String device;
    long asn = -1;
    boolean isBot;
    private boolean saysLive;

    private Beacon() {
        Arrays.fill(counters, -1);
        Arrays.fill(reals, -1);
        Arrays.fill(numbers, -1);
        Arrays.fill(request, -1);
    }

    static Beacon of(JsonFactory json, byte[] value) throws IOException {
        Beacon beacon = new Beacon();
        try (JsonParser parser = json.createParser(value)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                parser.nextToken();
                beacon.take(name, parser);
            }
        }
        return beacon;
    }

    private void take(String name, JsonParser parser) throws IOException {
        switch (name) {
            case "customer_id" -> customerId = parser.getText();
            case "view_id" -> viewId = parser.getText();
            case "event" -> event = parser.getText();
            case "source_event" -> sourceEvent = parser.getText();
            case "seq" -> seq = parser.getLongValue();
            case "client_time_ms" -> clientTimeMs = parser.getLongValue();
            case "clock_offset_ms" -> {
                hasClockOffset = parser.currentToken() == JsonToken.VALUE_NUMBER_INT;
                clockOffsetMs = hasClockOffset ? parser.getLongValue() : 0;
            }
            case "playhead_ms" -> playheadMs = measured(parser);
            case "country" -> country = text(parser, Integer.MAX_VALUE);
            case "browser" -> browser = text(parser, Integer.MAX_VALUE);
            case "os" -> os = text(parser, Integer.MAX_VALUE);
            case "device" -> device = text(parser, Integer.MAX_VALUE);
            case "asn" -> asn = measured(parser);
            case "is_bot" -> isBot = parser.currentToken() == JsonToken.VALUE_TRUE;
            case "attrs" -> {
                while (parser.nextToken() == JsonToken.FIELD_NAME) {
                    Names.Field field = Names.of(parser.currentName());
                    JsonToken token = parser.nextToken();
                    if (token.isStructStart()) {
                        parser.skipChildren();
                    } else if (field != null) {
                        takeAttribute(field, parser);
                    }
                }
            }
            default -> {
                if (parser.currentToken().isStructStart()) {
                    parser.skipChildren();
                }
            }
        }
    }

    private void takeAttribute(Names.Field field, JsonParser parser) throws IOException {
        int at = field.at();
        switch (field.kind()) {
            case COUNTER -> {
                counters[at] = measured(parser);
                hasCounters |= counters[at] >= 0;
            }
            case REAL -> {
                reals[at] = real(parser);
                hasCounters |= reals[at] >= 0;
            }
            case TEXT -> state(at, text(parser, field.charactersMax()));
            case NUMBER -> {
                numbers[at] = measured(parser);
                hasDimensions |= numbers[at] >= 0;
            }
            case CUSTOM -> takeCustom(at, text(parser, field.charactersMax()));
            case BITRATE -> bitrateBps = Math.min(Math.max(0, measured(parser)), BITRATE_MAX);
            case IS_LIVE -> {
                saysLive = true;
                state(Names.STREAM_TYPE, flag(parser) ? "live" : "vod");
            }
            case STREAM_TYPE -> {
                if (!saysLive) {
                    state(Names.STREAM_TYPE, "live".equals(parser.getText()) ? "live" : "vod");
                }
            }
            case RANGES -> {
                String sent = parser.getText();
                if (parser.currentToken() == JsonToken.VALUE_STRING && sent.length() <= field.charactersMax()) {
                    ranges = sent;
                    hasCounters = true;
                }
            }
            case AUTOPLAY -> {
                autoplay = flag(parser);
                hasDimensions = true;
            }
            case PRELOAD -> state(Names.PRELOAD, preload(parser));
            case PROGRAM_TIME -> programMs = Math.max(0, measured(parser));
            case EDGE_TIME -> edgeMs = Math.max(0, measured(parser));
            case ERROR_CODE, ERROR_MESSAGE, ERROR_CONTEXT, ERROR_SEVERITY ->
                error[at] = text(parser, field.charactersMax());
            case ERROR_BUSINESS -> isBusiness = flag(parser);
            case REQUEST -> request[at] = measured(parser);
        }
    }

    private void takeCustom(int number, String value) {
        if (value != null) {
            custom = custom == null ? new TreeMap<>() : custom;
            if (custom.size() < CUSTOM_MAX) {
                custom.put(number, value);
            }
            hasDimensions = true;
        }
    }

    private void state(int at, String value) {
        boolean isDerived = at == Names.DEVICE || at == Names.OS || at == Names.BROWSER;
        if (!isDerived || (value != null && !value.isEmpty())) {
            texts[at] = value;
            given[at] = true;
            hasDimensions = true;
        }
    }

    /** What is shown, by the server's clock; 0: not given, or a recording of a live stream. */
    long program() {
        return programMs < 0 || (edgeMs > 0 && edgeMs - programMs > BEHIND_EDGE_MS_MAX) ? 0 : programMs;
    }

    private static long measured(JsonParser parser) throws IOException {
        if (parser.currentToken() == JsonToken.VALUE_NUMBER_INT && parser.getNumberType() != JsonParser.NumberType.BIG_INTEGER) {
            long value = parser.getLongValue();
            return value < 0 ? -1 : Math.min(value, NUMBER_MAX);
        }
        double value = real(parser);
        return value < 0 ? -1 : (long) Math.rint(value);
    }

    private static double real(JsonParser parser) throws IOException {
        double value = -1;
        if (parser.currentToken().isNumeric()) {
            value = parser.getDoubleValue();
        } else if (parser.currentToken() == JsonToken.VALUE_STRING) {
            try {
                value = Double.parseDouble(parser.getText().strip());
            } catch (NumberFormatException error) {
                return -1;
            }
        }
        return value >= 0 && !Double.isInfinite(value) ? Math.min(value, NUMBER_MAX) : -1;
    }

    private static String text(JsonParser parser, int charactersMax) throws IOException {
        if (parser.currentToken() == JsonToken.VALUE_NULL) {
            return null;
        }
        String value = parser.getText();
        return value.length() <= charactersMax ? value : value.substring(0, charactersMax);
    }

    private static boolean flag(JsonParser parser) throws IOException {
        return parser.currentToken() == JsonToken.VALUE_TRUE || "true".equals(parser.getText());
    }

    private static String preload(JsonParser parser) throws IOException {
        String value = parser.currentToken() == JsonToken.VALUE_STRING ? parser.getText() : "";
        if (value.equals("none") || value.equals("metadata") || value.equals("auto")) {
            return value;
        }
        return flag(parser) ? "auto" : "none";
    }
}
