import com.fasterxml.jackson.core.JsonFactory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The rows and live figures of application `video_views` on Kafka Streams, for one client alone: mux-embed, whose beacons come in
 * order, without ads. A beacon whose number has come is a duplicate; one that comes out of order is not put in its place.
 * Arguments are those of Peer. System property `clean.ms`: how long after the player was closed the row is written.
 */
public final class FullViews {
    private static final long CLEAN_MS = Long.getLong("clean.ms", 60_000);
    private static final long ENDED_MS = 300_000;
    private static final long SILENT_MS = 300_000;
    private static final long PAUSED_MS = 3_600_000;
    private static final long LATENESS_MS = 3_600_000;
    private static final long LIVE_SILENCE_MS = 75_000;
    private static final long IDLE_CHECK_MS = 200;

    private static final int[] SHOWN = {
        Figures.VIEWERS, Figures.REBUFFERING, Figures.BITRATE, Figures.BITRATE_VIEWERS,
    };

    private FullViews() {}

    static final class Fold implements Processor<byte[], byte[], byte[], byte[]> {
        private final JsonFactory json = new JsonFactory();
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], View> views;
        private KeyValueStore<byte[], Dimensions> dimensions;
        private KeyValueStore<byte[], byte[]> deadlines;
        private Board board;
        private long clockMs;
        private long earliestDueMs;
        private long wallMs;

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
            views = context.getStateStore("views");
            dimensions = context.getStateStore("dimensions");
            deadlines = context.getStateStore("deadlines");
            board = new Board(
                    context.getStateStore("live"), context.getStateStore("cohorts"), json, context.taskId().partition());
            context.schedule(Duration.ofMillis(IDLE_CHECK_MS), PunctuationType.WALL_CLOCK_TIME, this::passIdle);
        }

        /** While nothing comes, time passes by the machine's clock. */
        private void passIdle(long nowMs) {
            if (clockMs > 0 && wallMs > 0) {
                advance(clockMs + Math.max(0, nowMs - wallMs));
            }
            wallMs = nowMs;
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            try {
                wallMs = 0;
                advance(record.timestamp());
                fold(record.key(), Beacon.of(json, record.value()));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private void fold(byte[] key, Beacon beacon) {
            View view = views.get(key);
            if (view == null) {
                view = new View();
                view.firstAppendMs = view.lastAppendMs = clockMs;
            }
            Figures customer = board.of(beacon.customerId, clockMs);
            if (beacon.seq < view.nextSeq) {
                view.duplicates++;
                customer.values[Figures.DUPLICATES]++;
            } else {
                view.missing += beacon.seq - view.nextSeq;
                view.nextSeq = beacon.seq + 1;
                view.beacons++;
                view.lastAppendMs = clockMs;
                view.finishedMs = 0;
                customer.values[Figures.BEACONS]++;
                Rules.fold(view, beacon);
                Dimensions known = dimensions.get(key);
                known = known == null ? new Dimensions() : known;
                boolean changed = known.merge(beacon, beacon.event.equals("viewstart"));
                if (changed) {
                    dimensions.put(key, known);
                }
                note(view, customer, beacon.customerId, known, changed);
            }
            board.store(beacon.customerId, customer);
            schedule(key, view);
            views.put(key, view);
        }

        private void note(View view, Figures customer, String customerId, Dimensions known, boolean changed) {
            count(view, customer, customerId, known);
            int state = view.state;
            boolean isOver = state == View.PAUSED || state == View.ENDED || state == View.FAILED;
            boolean isWatched = view.isOpen && !isOver;
            if (isWatched) {
                boolean isSame = !changed && view.cohort != null;
                String cohort = isSame ? view.cohort : board.cohort(customerId, customer, known);
                int viewer = state == View.REBUFFERING ? 2 : 1;
                show(view, customer, viewer, state == View.PLAYING ? view.bitrateBps : 0, cohort);
                noteOutcome(view, customer, cohort);
            } else {
                String cohort = view.cohort != null ? view.cohort : board.cohort(customerId, customer, known);
                noteOutcome(view, customer, cohort);
                show(view, customer, 0, 0, null);
            }
        }

        private void count(View view, Figures customer, String customerId, Dimensions known) {
            if (view.hasBegun && !view.isStarted) {
                board.add(customer, board.cohort(customerId, customer, known), new int[] {Figures.STARTED}, new long[] {1});
                view.isStarted = true;
            }
            boolean isOpen = view.hasBegun && view.finishedMs == 0;
            customer.values[Figures.OPEN] += isOpen == view.isOpen ? 0 : isOpen ? 1 : -1;
            view.isOpen = isOpen;
        }

        private void noteOutcome(View view, Figures customer, String cohort) {
            long startupMs = view.shownStartupMs < 0 && view.hasPlayed ? view.counters[Names.STARTUP] : -1;
            boolean hasFailed = view.isFatal && !(view.hasFailure && view.isBusiness);
            if (!view.isStarted || (startupMs < 0 && hasFailed == view.hasFailed)) {
                return;
            }
            long failures = hasFailed == view.hasFailed ? 0 : hasFailed ? 1 : -1;
            int[] at = {Figures.STARTUPS, Figures.STARTUP_MS, Figures.FAILURES};
            board.add(customer, cohort, at, new long[] {startupMs < 0 ? 0 : 1, Math.max(0, startupMs), failures});
            view.shownStartupMs = startupMs < 0 ? view.shownStartupMs : startupMs;
            view.hasFailed = hasFailed;
        }

        private void show(View view, Figures customer, int viewer, long bitrateBps, String cohort) {
            boolean isSame = cohort == null ? view.cohort == null : cohort.equals(view.cohort);
            if (isSame && viewer == view.viewer && bitrateBps == view.shownBitrateBps) {
                return;
            }
            board.add(customer, view.cohort, SHOWN, shown(view.viewer, view.shownBitrateBps, -1));
            board.add(customer, cohort, SHOWN, shown(viewer, bitrateBps, 1));
            view.viewer = viewer;
            view.shownBitrateBps = bitrateBps;
            view.cohort = cohort;
        }

        private static long[] shown(int viewer, long bitrateBps, long sign) {
            return new long[] {
                viewer > 0 ? sign : 0, viewer == 2 ? sign : 0, bitrateBps * sign, bitrateBps > 0 ? sign : 0,
            };
        }

        private static long finishesMs(View view) {
            long quietMs = SILENT_MS;
            if ((view.ended & View.CLEAN_EXIT) != 0) {
                quietMs = CLEAN_MS;
            } else if (view.state == View.ENDED || view.state == View.FAILED) {
                quietMs = ENDED_MS;
            } else if (view.state == View.PAUSED || !view.hasBegun) {
                quietMs = PAUSED_MS;
            }
            return view.lastAppendMs + quietMs;
        }

        private static long dueMs(View view) {
            if (view.finishedMs != 0) {
                return view.finishedMs + LATENESS_MS;
            }
            long finishesMs = finishesMs(view);
            return view.viewer > 0 ? Math.min(finishesMs, view.lastAppendMs + LIVE_SILENCE_MS) : finishesMs;
        }

        /** Its deadline in the store is never later than what is due: one that is too early moves when it is met. */
        private void schedule(byte[] key, View view) {
            long dueMs = dueMs(view);
            if (view.dueMs != 0 && view.dueMs <= dueMs) {
                return;
            }
            if (view.dueMs != 0) {
                deadlines.delete(deadline(view.dueMs, key));
            }
            deadlines.put(deadline(dueMs, key), key);
            view.dueMs = dueMs;
            earliestDueMs = earliestDueMs == 0 ? dueMs : Math.min(earliestDueMs, dueMs);
        }

        private static byte[] deadline(long dueMs, byte[] key) {
            return ByteBuffer.allocate(Long.BYTES + key.length).putLong(dueMs).put(key).array();
        }

        private void advance(long toMs) {
            long beforeMs = clockMs;
            clockMs = Math.max(clockMs, toMs);
            if (clockMs == beforeMs) {
                return;
            }
            if (beforeMs == 0 || clockMs >= earliestDueMs) {
                fireDue();
            }
            if (beforeMs != 0 && clockMs / Board.BUCKET_MS != beforeMs / Board.BUCKET_MS) {
                closeBuckets();
            }
        }

        private void fireDue() {
            List<KeyValue<byte[], byte[]>> due = new ArrayList<>();
            earliestDueMs = Long.MAX_VALUE;
            byte[] end = ByteBuffer.allocate(Long.BYTES).putLong(Long.MAX_VALUE).array();
            try (KeyValueIterator<byte[], byte[]> all = deadlines.range(new byte[Long.BYTES], end)) {
                while (all.hasNext()) {
                    KeyValue<byte[], byte[]> one = all.next();
                    long dueMs = ByteBuffer.wrap(one.key).getLong();
                    if (dueMs > clockMs) {
                        earliestDueMs = dueMs;
                        break;
                    }
                    due.add(one);
                }
            }
            for (KeyValue<byte[], byte[]> one : due) {
                deadlines.delete(one.key);
                fire(one.value);
            }
        }

        private void fire(byte[] key) {
            View view = views.get(key);
            if (view == null) {
                return;
            }
            view.dueMs = 0;
            if (dueMs(view) > clockMs) {
                schedule(key, view);
                views.put(key, view);
                return;
            }
            if (view.finishedMs != 0) {
                views.delete(key);
                dimensions.delete(key);
                return;
            }
            String[] ids = new String(key, StandardCharsets.UTF_8).split(":", 2);
            Figures customer = board.of(ids[0], clockMs);
            show(view, customer, 0, 0, null);
            if (finishesMs(view) <= clockMs) {
                finish(key, view, customer, ids);
            }
            board.store(ids[0], customer);
            schedule(key, view);
            views.put(key, view);
        }

        private void finish(byte[] key, View view, Figures customer, String[] ids) {
            view.finishedMs = finishesMs(view);
            Dimensions known = dimensions.get(key);
            known = known == null ? new Dimensions() : known;
            count(view, customer, ids[0], known);
            if (!view.hasBegun) {
                customer.values[Figures.DROPPED] += view.beacons;
                return;
            }
            view.revision++;
            Row row = new Row(view);
            try {
                context.forward(new Record<>(key, row.json(json, ids[0], ids[1], known), clockMs), "rows");
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            if (view.revision > 1) {
                customer.values[Figures.REVISED]++;
                return;
            }
            int[] at = {
                Figures.FINISHED, Figures.PLAYBACK_FAILURES, Figures.STARTUP_FAILURES, Figures.EXITS,
                Figures.FINISHED_WATCH, Figures.FINISHED_REBUFFER, Figures.FINISHED_RATED, Figures.FINISHED_BAD,
            };
            long[] changes = {
                1, one(row.playbackFailed), one(row.startupFailed), one(row.ebvs), row.watchMs, row.rebufferMs,
                one(row.isGood != null), one(Boolean.FALSE.equals(row.isGood)),
            };
            board.add(customer, board.cohort(ids[0], customer, known), at, changes);
        }

        private static long one(boolean holds) {
            return holds ? 1 : 0;
        }

        private void closeBuckets() {
            try {
                for (Map.Entry<String, byte[]> live : board.close(clockMs).entrySet()) {
                    byte[] key = live.getKey().getBytes(StandardCharsets.UTF_8);
                    context.forward(new Record<>(key, live.getValue(), clockMs), "live");
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static <K, V> StoreBuilder<KeyValueStore<K, V>> store(
            String name, Serde<K> keys, Serde<V> values, boolean caches) {
        StoreBuilder<KeyValueStore<K, V>> builder =
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), keys, values);
        return caches ? builder.withCachingEnabled() : builder.withCachingDisabled();
    }

    public static void main(String[] arguments) throws Exception {
        Peer.run(topology(arguments[0]), arguments);
    }

    static Topology topology(String name) {
        var bytes = Serdes.ByteArray();
        Topology topology = new Topology();
        topology.addSource("beacons", bytes.deserializer(), bytes.deserializer(), "beacons");
        topology.addProcessor("fold", Fold::new, "beacons");
        topology.addStateStore(store("views", bytes, Wire.serde(View::read), false), "fold");
        topology.addStateStore(store("dimensions", bytes, Wire.serde(Dimensions::read), false), "fold");
        topology.addStateStore(store("deadlines", bytes, bytes, false), "fold");
        // Hot rows: without the cache each beacon would write its customer's figures.
        topology.addStateStore(store("live", Serdes.String(), Wire.serde(Figures::read), true), "fold");
        topology.addStateStore(store("cohorts", Serdes.String(), Wire.serde(Figures::read), true), "fold");
        topology.addSink("rows", name + ".rows", bytes.serializer(), bytes.serializer(), "fold");
        topology.addSink("live", name + ".live", bytes.serializer(), bytes.serializer(), "fold");
        return topology;
    }
}
