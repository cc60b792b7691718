import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The fold of bench.processor.reduced on Kafka Streams: Processor API, persistent store, exactly_once_v2.
 * Arguments and system properties are those of Peer.
 */
public final class ReducedViews {
    private static final int PLAYING = 2;

    /** An open view; bit n of seen: sequence number n was seen. */
    static final class State {
        long seen;
        long playingMs;
        long maxPlayheadMs;
        long atMs;
        int count;
        int duplicates;
        int state;
    }

    static final class StateSerde implements Serde<State>, Serializer<State>, Deserializer<State> {
        private static final int BYTES = 4 * Long.BYTES + 3 * Integer.BYTES;

        @Override
        public byte[] serialize(String topic, State state) {
            if (state == null) {
                return null;
            }
            ByteBuffer buffer = ByteBuffer.allocate(BYTES);
            buffer.putLong(state.seen).putLong(state.playingMs).putLong(state.maxPlayheadMs).putLong(state.atMs);
            buffer.putInt(state.count).putInt(state.duplicates).putInt(state.state);
            return buffer.array();
        }

        @Override
        public State deserialize(String topic, byte[] data) {
            if (data == null) {
                return null;
            }
            ByteBuffer buffer = ByteBuffer.wrap(data);
            State state = new State();
            state.seen = buffer.getLong();
            state.playingMs = buffer.getLong();
            state.maxPlayheadMs = buffer.getLong();
            state.atMs = buffer.getLong();
            state.count = buffer.getInt();
            state.duplicates = buffer.getInt();
            state.state = buffer.getInt();
            return state;
        }

        @Override
        public Serializer<State> serializer() {
            return this;
        }

        @Override
        public Deserializer<State> deserializer() {
            return this;
        }

        @Override
        public void configure(Map<String, ?> configs, boolean isKey) {}

        @Override
        public void close() {}
    }

    static final class Fold implements Processor<byte[], byte[], byte[], byte[]> {
        private final JsonFactory json = new JsonFactory();
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], State> views;

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
            this.views = context.getStateStore("views");
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            String event = "";
            long clientTimeMs = 0;
            long playheadMs = 0;
            int seq = 0;
            try (JsonParser parser = json.createParser(record.value())) {
                parser.nextToken();
                while (parser.nextToken() == JsonToken.FIELD_NAME) {
                    String name = parser.currentName();
                    JsonToken token = parser.nextToken();
                    switch (name) {
                        case "event" -> event = parser.getText();
                        case "client_time_ms" -> clientTimeMs = parser.getLongValue();
                        case "seq" -> seq = parser.getIntValue();
                        case "playhead_ms" -> playheadMs = parser.getLongValue();
                        default -> {
                            if (token.isStructStart()) {
                                parser.skipChildren();
                            }
                        }
                    }
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            byte[] key = record.key();
            State view = views.get(key);
            if (view == null) {
                view = new State();
            }
            long bit = 1L << seq;
            if ((view.seen & bit) != 0) {
                view.duplicates++;
            } else {
                view.seen |= bit;
                view.count++;
                if (clientTimeMs > view.atMs) {
                    if (view.state == PLAYING) {
                        view.playingMs += clientTimeMs - view.atMs;
                    }
                    view.atMs = clientTimeMs;
                }
                if (playheadMs > view.maxPlayheadMs) {
                    view.maxPlayheadMs = playheadMs;
                }
                switch (event) {
                    case "viewstart" -> view.state = 1;
                    case "playing", "rebufferend" -> view.state = PLAYING;
                    case "pause" -> view.state = 3;
                    case "rebufferstart" -> view.state = 4;
                    case "viewend" -> view.state = 5;
                    default -> {}
                }
                if (event.equals("viewend")) {
                    String row = "{\"count\":" + view.count + ",\"duplicates\":" + view.duplicates + ",\"playing_ms\":"
                            + view.playingMs + ",\"max_playhead_ms\":" + view.maxPlayheadMs + ",\"state\":" + view.state
                            + "}";
                    context.forward(record.withValue(row.getBytes(StandardCharsets.UTF_8)));
                    views.delete(key);
                    return;
                }
            }
            views.put(key, view);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String name = arguments[0];
        boolean caches = Long.parseLong(arguments[5]) > 0;
        StoreBuilder<KeyValueStore<byte[], State>> store = Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore("views"), Serdes.ByteArray(), new StateSerde());
        store = caches ? store.withCachingEnabled() : store.withCachingDisabled();
        store = store.withLoggingEnabled(Collections.emptyMap());
        Topology topology = new Topology();
        topology.addSource("beacons", Serdes.ByteArray().deserializer(), Serdes.ByteArray().deserializer(), "beacons");
        topology.addProcessor("fold", Fold::new, "beacons");
        topology.addStateStore(store, "fold");
        topology.addSink(
                "rows", name + ".rows", Serdes.ByteArray().serializer(), Serdes.ByteArray().serializer(), "fold");
        Peer.run(topology, arguments);
    }
}
