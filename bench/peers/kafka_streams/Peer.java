import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
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
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/**
 * What the peers on Kafka Streams share: exactly_once_v2, tuned as its guides say, and the times of commits.
 * Arguments: NAME BOOTSTRAP STATE_DIR COMMIT_MS COMMITS_FILE CACHE_BYTES THREADS. System properties: `client` (its client id),
 * `session.ms` and `standbys`; the defaults are Kafka Streams' own.
 */
public final class Peer {
    private static final ConcurrentLinkedQueue<Double> COMMITS = new ConcurrentLinkedQueue<>();

    private Peer() {}

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

    /** Runs a topology until SIGTERM; the arguments are those of the programs. */
    static void run(Topology topology, String[] arguments) throws InterruptedException {
        KafkaStreams streams = new KafkaStreams(topology, config(arguments), new DefaultKafkaClientSupplier() {
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

    private static Properties config(String[] arguments) {
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
        return config;
    }
}
