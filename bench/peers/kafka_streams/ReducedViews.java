import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/**
 * The fold of bench.processor.reduced on Kafka Streams: Processor API, persistent store, exactly_once_v2.
 * Arguments: NAME BOOTSTRAP STATE_DIR COMMIT_MS COMMITS_FILE CACHE_BYTES THREADS. System properties: `client` (its client id),
 * `session.ms` and `standbys`; the defaults are Kafka Streams' own.
 */
public final class ReducedViews {
    private static final int PLAYING = 2;
    private static final ConcurrentLinkedQueue<Double> COMMITS = new ConcurrentLinkedQueue<>();

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

    /** One block cache for all stores, Bloom filters, larger write buffers: what its tuning guide names. */
    public static final class Rocks implements RocksDBConfigSetter {
        private static final Cache CACHE = new LRUCache(256L * 1024 * 1024);
        private final BloomFilter filter = new BloomFilter(10);

        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
            table.setBlockCache(CACHE);
            table.setFilterPolicy(filter);
            options.setTableFormatConfig(table);
        }

        @Override
        public void close(String store, Options options) {
            filter.close();
        }
    }

    /** Notes how long commits take: from the flush of the first task's producer buffers to the end of the transaction. */
    static final class TimedProducer extends KafkaProducer<byte[], byte[]> {
        private long began;

        TimedProducer(Map<String, Object> config) {
            super(config, new ByteArraySerializer(), new ByteArraySerializer());
        }

        @Override
        public void flush() {
            if (began == 0) {
                began = System.nanoTime();
            }
            super.flush();
        }

        @Override
        public void commitTransaction() {
            super.commitTransaction();
            COMMITS.add((System.nanoTime() - began) / 1e6);
            began = 0;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String name = arguments[0];
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[1]);
        config.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, arguments[3]);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, arguments[5]);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[6]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        config.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Rocks.class);
        config.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), "lz4");
        config.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 256 * 1024);
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 5000);
        if (System.getProperty("client") != null) {
            config.put(StreamsConfig.CLIENT_ID_CONFIG, System.getProperty("client"));
        }
        if (System.getProperty("session.ms") != null) {
            int sessionMs = Integer.getInteger("session.ms");
            config.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), sessionMs);
            config.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), sessionMs / 6);
        }
        config.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, Integer.getInteger("standbys", 0));
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
        KafkaStreams streams = new KafkaStreams(topology, config, new DefaultKafkaClientSupplier() {
            @Override
            public Producer<byte[], byte[]> getProducer(Map<String, Object> producerConfig) {
                return new TimedProducer(producerConfig);
            }
        });
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        CountDownLatch stopped = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            // By default a member that stops stays in the group until its session ends.
            streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(30)));
            try {
                List<String> lines = COMMITS.stream().map(ms -> String.format("%.3f", ms)).toList();
                Files.write(Path.of(arguments[4]), lines);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            stopped.countDown();
        }));
        streams.start();
        stopped.await();
    }
}
