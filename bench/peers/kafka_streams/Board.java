import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/** The live figures of a partition: by customer, and by cohort of the seven default dimensions; slices are added up at the end. */
final class Board {
    static final long BUCKET_MS = 5_000;
    private static final long IDLE_MS = 600_000;
    private static final int COHORTS_MAX = 1_000;
    private static final int VALUES_MAX = 20;
    private static final int PAIRS_MAX = 30;
    private static final int CHARACTERS_MAX = 64;
    private static final String SEPARATOR = "\u001f";
    private static final String OTHER = "(other)";
    private static final String UNKNOWN = "(unknown)";
    private static final String[] DIMENSIONS = {
        "cdn", "country", "asn", "device", "player_version", "video_title", "stream_type",
    };

    private final KeyValueStore<String, Figures> customers;
    private final KeyValueStore<String, Figures> cohorts;
    private final JsonFactory json;
    private final int partition;

    Board(KeyValueStore<String, Figures> customers, KeyValueStore<String, Figures> cohorts, JsonFactory json, int partition) {
        this.customers = customers;
        this.cohorts = cohorts;
        this.json = json;
        this.partition = partition;
    }

    /** The customer's open bucket; `store` it when it has been counted into. */
    Figures of(String customerId, long clockMs) {
        Figures found = customers.get(customerId);
        if (found == null) {
            found = new Figures();
        }
        found.begin(clockMs - clockMs % BUCKET_MS);
        found.activeMs = clockMs;
        return found;
    }

    void store(String customerId, Figures figures) {
        customers.put(customerId, figures);
    }

    /** The name of the cohort in which a view with these dimensions counts. */
    String cohort(String customerId, Figures customer, Dimensions dimensions) {
        StringBuilder name = new StringBuilder(customerId);
        for (int at : new int[] {Names.CDN, Names.COUNTRY}) {
            name.append(SEPARATOR).append(value(dimensions.texts[at]));
        }
        long asn = dimensions.numbers[Names.ASN];
        name.append(SEPARATOR).append(asn < 0 ? "" : Long.toString(asn));
        for (int at : new int[] {Names.DEVICE, Names.PLAYER_VERSION, Names.VIDEO_TITLE, Names.STREAM_TYPE}) {
            name.append(SEPARATOR).append(value(dimensions.texts[at]));
        }
        String found = name.toString();
        boolean isFull = customer.cohorts >= COHORTS_MAX && cohorts.get(found) == null;
        return isFull ? customerId + (SEPARATOR + OTHER).repeat(DIMENSIONS.length) : found;
    }

    private static String value(String text) {
        if (text == null) {
            return "";
        }
        String cut = text.length() > CHARACTERS_MAX ? text.substring(0, CHARACTERS_MAX) : text;
        return cut.replace(SEPARATOR, " ");
    }

    /** Adds to the customer's figures, and to those of a cohort, if one is named. */
    void add(Figures customer, String cohort, int[] at, long[] changes) {
        for (int number = 0; number < at.length; number++) {
            customer.values[at[number]] += changes[number];
        }
        if (cohort != null) {
            Figures found = cohorts.get(cohort);
            if (found == null) {
                found = new Figures();
                customer.cohorts++;
            }
            found.begin(customer.bucketMs);
            found.activeMs = customer.activeMs;
            for (int number = 0; number < at.length; number++) {
                found.values[at[number]] += changes[number];
            }
            cohorts.put(cohort, found);
        }
    }

    /** The bucket of each customer that the clock has passed, by customer; the next one is open then. */
    Map<String, byte[]> close(long clockMs) throws IOException {
        Map<String, byte[]> closed = new LinkedHashMap<>();
        List<KeyValue<String, Figures>> rows = new ArrayList<>();
        try (KeyValueIterator<String, Figures> all = customers.all()) {
            all.forEachRemaining(rows::add);
        }
        for (KeyValue<String, Figures> row : rows) {
            Figures customer = row.value;
            if (customer.bucketMs + BUCKET_MS <= clockMs) {
                List<KeyValue<String, Figures>> parts = cohortsOf(row.key);
                closed.put(row.key, live(row.key, customer, parts));
                forgetIdle(row.key, customer, parts, clockMs);
            }
        }
        return closed;
    }

    private void forgetIdle(String customerId, Figures customer, List<KeyValue<String, Figures>> parts, long clockMs) {
        for (KeyValue<String, Figures> part : parts) {
            if (part.value.values[Figures.VIEWERS] == 0 && clockMs - part.value.activeMs > IDLE_MS) {
                cohorts.delete(part.key);
                customer.cohorts--;
            }
        }
        if (customer.values[Figures.OPEN] == 0 && clockMs - customer.activeMs > IDLE_MS) {
            customers.delete(customerId);
            return;
        }
        customer.begin(clockMs - clockMs % BUCKET_MS);
        customers.put(customerId, customer);
    }

    private List<KeyValue<String, Figures>> cohortsOf(String customerId) {
        List<KeyValue<String, Figures>> found = new ArrayList<>();
        try (KeyValueIterator<String, Figures> range = cohorts.range(customerId + SEPARATOR, customerId + " ")) {
            range.forEachRemaining(found::add);
        }
        return found;
    }

    private byte[] live(String customerId, Figures customer, List<KeyValue<String, Figures>> parts) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(8_192);
        try (JsonGenerator out = json.createGenerator(bytes)) {
            out.writeStartObject();
            out.writeNumberField("schema_version", 2);
            out.writeNumberField("partition", partition);
            out.writeStringField("customer_id", customerId);
            out.writeNumberField("bucket_ms", customer.bucketMs);
            for (int at = 0; at < Figures.NAMES.length; at++) {
                out.writeNumberField(Figures.NAMES[at], customer.values[at]);
            }
            out.writeObjectFieldStart("slices");
            for (int first = 0; first < DIMENSIONS.length; first++) {
                writeSlices(out, customer, parts, first, -1);
            }
            for (int first = 0; first < DIMENSIONS.length; first++) {
                for (int second = first + 1; second < DIMENSIONS.length; second++) {
                    writeSlices(out, customer, parts, first, second);
                }
            }
            out.writeEndObject();
            out.writeEndObject();
        }
        return bytes.toByteArray();
    }

    private static void writeSlices(
            JsonGenerator out, Figures customer, List<KeyValue<String, Figures>> parts, int first, int second)
            throws IOException {
        boolean isPair = second >= 0;
        String ofNone = isPair ? UNKNOWN + SEPARATOR + UNKNOWN : UNKNOWN;
        TreeMap<String, long[]> sums = new TreeMap<>();
        long[] rest = customer.values.clone();
        for (KeyValue<String, Figures> part : parts) {
            String[] values = part.key.split(SEPARATOR, -1);
            String value = known(values[first + 1]) + (isPair ? SEPARATOR + known(values[second + 1]) : "");
            add(sums, value, part.value, customer.bucketMs, rest);
        }
        for (int at = 0; at < Figures.OF_SLICE; at++) {
            if (rest[at] != 0) {
                sums.computeIfAbsent(ofNone, name -> new long[Figures.OF_SLICE])[at] += rest[at];
            }
        }
        String name = DIMENSIONS[first] + (isPair ? "," + DIMENSIONS[second] : "") + "=";
        String ofOthers = isPair ? OTHER + SEPARATOR + OTHER : OTHER;
        for (Map.Entry<String, long[]> slice : largest(sums, isPair ? PAIRS_MAX : VALUES_MAX, ofNone, ofOthers).entrySet()) {
            writeSlice(out, name + slice.getKey(), slice.getValue());
        }
    }

    private static void add(TreeMap<String, long[]> sums, String value, Figures part, long bucketMs, long[] rest) {
        int counted = part.bucketMs == bucketMs ? Figures.OF_SLICE : Figures.FINISHED;
        for (int at = 0; at < counted; at++) {
            long figure = part.values[at];
            if (figure != 0) {
                sums.computeIfAbsent(value, name -> new long[Figures.OF_SLICE])[at] += figure;
                rest[at] -= figure;
            }
        }
    }

    private static String known(String value) {
        return value.isEmpty() ? UNKNOWN : value;
    }

    private static Map<String, long[]> largest(TreeMap<String, long[]> sums, int limit, String ofNone, String ofOthers) {
        Map<String, long[]> found = new LinkedHashMap<>();
        long[] none = sums.remove(ofNone);
        long[] others = sums.remove(ofOthers);
        if (sums.size() > limit) {
            List<Map.Entry<String, long[]>> order = new ArrayList<>(sums.entrySet());
            order.sort((one, other) -> {
                long[] a = one.getValue();
                long[] b = other.getValue();
                int byViewers = Long.compare(b[Figures.VIEWERS], a[Figures.VIEWERS]);
                long seenA = a[Figures.STARTED] + a[Figures.FINISHED];
                return byViewers != 0 ? byViewers : Long.compare(b[Figures.STARTED] + b[Figures.FINISHED], seenA);
            });
            others = others == null ? new long[Figures.OF_SLICE] : others;
            for (Map.Entry<String, long[]> small : order.subList(limit, order.size())) {
                long[] values = sums.remove(small.getKey());
                for (int at = 0; at < values.length; at++) {
                    others[at] += values[at];
                }
            }
        }
        found.putAll(sums);
        if (none != null) {
            found.put(ofNone, none);
        }
        if (others != null) {
            found.put(ofOthers, others);
        }
        return found;
    }

    private static void writeSlice(JsonGenerator out, String name, long[] values) throws IOException {
        boolean isZero = true;
        for (long value : values) {
            isZero &= value == 0;
        }
        if (!isZero) {
            out.writeObjectFieldStart(name);
            for (int at = 0; at < values.length; at++) {
                if (values[at] != 0) {
                    out.writeNumberField(Figures.NAMES[at], values[at]);
                }
            }
            out.writeEndObject();
        }
    }
}
