"""What the finalizer's tests share: views with a known truth, the process under test, and independent readers of its tables."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import duckdb
import psycopg
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder

from deploy.local import class_archives
from deploy.local.paths import SPARK_JARS
from deploy.local.ports import free_port
from deploy.local.process import Child, wait_until
from shared.codec import VIEW
from shared.partitioning import partition_of, view_key
from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from shared.topics import PROFILES, VIEWS

#: A morning in 2026 at which all test views begin, ms since 1970.
MORNING_MS = 1_770_012_000_000
HOUR_MS = 3_600_000
START_SECONDS_MAX = 240.0
RUN_SECONDS_MAX = 400.0
#: A broker on a busy machine takes its time with a transaction.
_PRODUCER_SECONDS_MAX = 120.0
#: `source` is always there.
ROLLUP_BY = "source,country+device"


def spark_environment() -> dict[str, str]:
    """What makes a short-lived Spark cheap, as environment variables.

    Most of a short run is starting, for which the first compiler is enough. Its code cache holds 48 MB by default, less than
    Spark fills: methods would be dropped and compiled again. Jars on the class path are in the archive of classes. Young objects
    have half the heap from the start: they are collected half as often, and few are left to copy then.
    """
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=240m"]
    return {
        "JAVA_TOOL_OPTIONS": " ".join([*options, *class_archives.options(class_archives.SPARK)]),
        # For drivers alone: the JVM that makes up their command has a smaller heap.
        "SPARK_SUBMIT_OPTS": "-Xms768m -Xmn384m",
        SPARK_CLASS_PATH: ":".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
    }


#: Spark puts what this names on the class path of its JVMs.
SPARK_CLASS_PATH = "SPARK_DIST_CLASSPATH"


def a_view(name: str, *, customer: str = "acme", revision: int = 1, hour: int = 0, **fields: Any) -> View:
    """A view of `customer` that ends in the `hour`th hour after `MORNING_MS`; its beacons came in within three hours."""
    end_ms = MORNING_MS + hour * HOUR_MS + 60_000
    given: dict[str, Any] = {
        "source": "mux",
        "day": MORNING_MS // 86_400_000,
        "first_append_ms": MORNING_MS,
        "last_append_ms": MORNING_MS + 3 * HOUR_MS,
        "view_start_ms": end_ms - 30_000,
        "view_end_ms": end_ms,
        "end_reason": "clean",
        "view_dropped": False,
        "beacon_count": 5,
        **fields,
    }
    return View(schema_version=1, customer_id=customer, view_id=name, revision=revision, **given)


def newest(revisions: Iterable[View]) -> list[View]:
    """The truth: of every view the largest (generation, revision)."""
    latest: dict[tuple[str, str], View] = {}
    for view in revisions:
        known = latest.get((view.customer_id, view.view_id))
        if known is None or (view.generation, view.revision) > (known.generation, known.revision):
            latest[view.customer_id, view.view_id] = view
    return sorted(latest.values(), key=lambda view: (view.customer_id, view.view_id))


@dataclass(frozen=True)
class RawRecord:
    """A record as it stands in a topic."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class Topic:
    """A transactional producer to topic `views`, as the processor is one."""

    bootstrap: str
    transactional_id: str
    _producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.transactional_id})
        self._producer.init_transactions(_PRODUCER_SECONDS_MAX)

    def send_raw(self, records: Iterable[RawRecord], *, commit: bool = True) -> None:
        """One transaction with records of any topic."""
        self._producer.begin_transaction()
        for one in records:
            self._producer.produce(one.topic, one.value, one.key, one.partition, headers=list(one.headers))
        self._producer.flush(_PRODUCER_SECONDS_MAX)
        if commit:
            self._producer.commit_transaction(_PRODUCER_SECONDS_MAX)
        else:
            self._producer.abort_transaction(_PRODUCER_SECONDS_MAX)

    def send(self, views: Iterable[View], *, also: Iterable[bytes] = (), commit: bool = True) -> None:
        """One transaction with these views, in this order, and other bytes; aborted unless `commit`."""
        self._producer.begin_transaction()
        for view in views:
            key = view_key(view.customer_id, view.view_id)
            partition = partition_of(key, PROFILES["laptop"].view_partitions)
            self._producer.produce(VIEWS.name, VIEW.encode(view), key, partition)
        for value in also:
            self._producer.produce(VIEWS.name, value, b"unknown", 0)
        self._producer.flush(_PRODUCER_SECONDS_MAX)
        if commit:
            self._producer.commit_transaction(_PRODUCER_SECONDS_MAX)
        else:
            self._producer.abort_transaction(_PRODUCER_SECONDS_MAX)


@dataclass
class Installation:
    """One warehouse, checkpoint and serving database, and the finalizer processes that work on them."""

    folder: Path
    bootstrap: str
    dsn: str
    admin_port: int = field(default_factory=free_port)
    environ: Mapping[str, str] = field(default_factory=dict)

    def environment(self, **settings: str) -> dict[str, str]:
        """What a finalizer process is given."""
        return {
            **os.environ,
            **spark_environment(),
            "PLAYHEAD_KAFKA_BOOTSTRAP": self.bootstrap,
            "FINALIZER_WAREHOUSE_DIR": str(self.folder / "warehouse"),
            "FINALIZER_CHECKPOINT_DIR": str(self.folder / "checkpoint"),
            "FINALIZER_JARS_DIR": str(SPARK_JARS),
            "FINALIZER_POSTGRES_DSN": self.dsn,
            "FINALIZER_TRIGGER_SECONDS": "1",
            "FINALIZER_RAW_TRIGGER_SECONDS": "1",
            "FINALIZER_ROLLUP_SECONDS": "1",
            "FINALIZER_DRIVER_MEMORY": "1g",
            # Each is a stream of its own, which a test of views need not start.
            "FINALIZER_APPLICATIONS": "",
            # The test views are of one day of the past.
            "FINALIZER_RECENT_DAYS": "36500",
            "FINALIZER_ROLLUP_BY": ROLLUP_BY,
            "FINALIZER_ADMIN_HOST": "127.0.0.1",
            "FINALIZER_ADMIN_PORT": str(self.admin_port),
            **self.environ,
            **{f"FINALIZER_{name.upper()}": value for name, value in settings.items()},
        }

    def child(self, job: str, **settings: str) -> Child:
        """A finalizer process, not yet started."""
        argv = [sys.executable, "-m", "services.finalizer", *job.split()]
        return Child(f"finalizer {job}", argv, log_file=self.folder / "finalizer.log", env=self.environment(**settings))

    def run_once(self, **settings: str) -> int | None:
        """Lands what the topic holds; the exit code."""
        with self.running("stream --once", **settings) as child:
            wait_for_exit(child)
            return child.exit_code

    @contextmanager
    def running(self, job: str, **settings: str) -> Iterator[Child]:
        """A finalizer process that is killed at the end if it still runs."""
        child = self.child(job, **settings)
        child.start()
        try:
            yield child
        finally:
            child.kill()

    def is_ready(self) -> bool:
        """Whether the process answers that it lands views."""
        try:
            with urlopen(f"http://127.0.0.1:{self.admin_port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def metrics(self) -> str:
        """What a running process exposes."""
        with urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    def table(self, name: str, query: str) -> list[tuple[Any, ...]]:
        """Rows of a Delta table, read without Spark: delta-rs reads the files, DuckDB answers `query` over `t`."""
        t = QueryBuilder().register("t", self.delta(name)).execute("SELECT * FROM t").read_all()
        with duckdb.connect() as connection:
            connection.register("t", t)
            return connection.execute(query).fetchall()

    def delta(self, name: str) -> DeltaTable:
        """A table of the warehouse."""
        return DeltaTable(self.folder / "warehouse" / name)

    def serving(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of the serving database."""
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(query).fetchall()


def wait_for_exit(child: Child) -> None:
    """Returns when the process has ended by itself."""
    wait_until(lambda: not child.is_running, RUN_SECONDS_MAX, f"{child.name} ends")


def jvm_of(child: Child) -> int:
    """The process id of the JVM that a finalizer process has started."""
    lists = [tasks.read_text().split() for tasks in Path(f"/proc/{child.pid}/task").glob("*/children")]
    (found,) = (int(one) for ids in lists for one in ids if Path(f"/proc/{one}/comm").read_text() == "java\n")
    return found


ROLLUPS = """
    SELECT extract(epoch FROM hour)::bigint / 3600, customer_id, views, started, startup_failures, playback_failures,
           exits_before_start, views_dropped, watch_ms, playing_ms, rebuffer_count, rebuffer_ms, seek_count, seek_ms,
           bitrate_integral::bigint, bitrate_time_ms, beacons, duplicates
    FROM serving.rollups_hourly ORDER BY 1, 2"""

RAW_TABLES = {"beacons": "bronze", "late": "late", "rejected": "rejected"}

#: The same, computed from the views by another engine.
RECOUNT = """
    SELECT hour, customer_id, count(*),
           count(*) FILTER (startup_ms IS NOT NULL OR coalesce(startup_unknown, 'not_started') <> 'not_started'),
           count(*) FILTER (startup_failed),
           count(*) FILTER (playback_failed), count(*) FILTER (ebvs), count(*) FILTER (view_dropped), sum(watch_ms)::bigint,
           sum(playing_ms)::bigint, sum(rebuffer_count)::bigint, sum(rebuffer_ms)::bigint, sum(seek_count)::bigint,
           sum(seek_ms)::bigint, sum(bitrate_integral)::bigint, sum(bitrate_time_ms)::bigint, sum(beacon_count)::bigint,
           sum(duplicate_count)::bigint
    FROM t WHERE NOT deleted GROUP BY 1, 2 ORDER BY 1, 2"""

BUCKETS = """
    SELECT extract(epoch FROM hour)::bigint / 3600, customer_id, metric, bucket, count
    FROM serving.histograms_hourly"""


def expect_truth(installation: Installation, truth: list[View]) -> None:
    """Asserts that views, rollups, histograms and the serving copy are exactly those of `truth`."""
    stored = installation.table(
        "views", "SELECT customer_id, view_id, revision, hour, watch_ms, startup_ms, deleted FROM t ORDER BY 1, 2"
    )
    assert stored == [
        (view.customer_id, view.view_id, view.revision, hour_of(view), view.watch_ms, view.startup_ms, view.deleted)
        for view in truth
    ]
    assert installation.serving(ROLLUPS) == installation.table("views", RECOUNT)
    assert buckets_served(installation) == buckets_of(truth)
    assert groups_stored(installation) == groups_of(truth)
    assert groups_served(installation) == {
        key: totals for key, totals in groups_of(truth).items() if key[0] != "minute"
    }
    assert installation.serving("SELECT customer_id, view_id, revision, deleted FROM serving.views ORDER BY 1, 2") == [
        (view.customer_id, view.view_id, view.revision, view.deleted) for view in truth
    ]
    assert installation.serving("SELECT * FROM finalizer.dirty_slices") == []
    # The sums of hot rows say what the rollups say, so every slice belongs to the rollups again.
    assert installation.serving(_DIFFERING) == []
    assert installation.serving("SELECT * FROM serving.hot_slices") == []
    # Every level of the blocks of hours holds every view once.
    views: Counter[str] = Counter()
    watch_ms: Counter[str] = Counter()
    for view in truth:
        if not view.deleted:
            views[view.customer_id] += 1
            watch_ms[view.customer_id] += view.watch_ms
    assert installation.serving(BLOCKS) == [
        (level, customer, views[customer], watch_ms[customer]) for level in range(14) for customer in sorted(views)
    ]


_DIFFERING = """
    SELECT serving.differing(array_agg(hour), array_agg(customer_id)) FROM (
        SELECT start AS hour, customer_id FROM serving.sums WHERE grain = 'hour'
        UNION SELECT extract(epoch FROM hour)::bigint / 3600, customer_id FROM serving.rollups_hourly
    ) AS slices"""
BLOCKS = """
    SELECT level, customer_id, sum(views)::bigint, sum(watch_ms)::bigint FROM serving.blocks
    GROUP BY level, customer_id ORDER BY level, customer_id COLLATE "C" """

Groups = Mapping[tuple[Any, ...], tuple[int, int, tuple[tuple[int, int], ...]]]

_WIDTHS_MS = {"minute": 60_000, "hour": HOUR_MS, "day": 24 * HOUR_MS}


def groups_of(truth: list[View]) -> Groups:
    """(grain, start, customer, dimensions, members) -> views, watch time, startup histogram: computed view by view."""
    views: Counter[tuple[Any, ...]] = Counter()
    watch_ms: Counter[tuple[Any, ...]] = Counter()
    startups: dict[tuple[Any, ...], Counter[int]] = {}
    sets = [(), *(tuple(one.split("+")) for one in ROLLUP_BY.split(","))]
    for view in truth:
        if view.deleted:
            continue
        for grain, width_ms in _WIDTHS_MS.items():
            start_ms = ended_ms(view) // width_ms * width_ms
            for names in sets:
                members = tuple(getattr(view, name) for name in names)
                key = (grain, start_ms, view.customer_id, "+".join(names), members)
                views[key] += 1
                watch_ms[key] += view.watch_ms
                counts = startups.setdefault(key, Counter())
                if view.startup_ms is not None:
                    counts[bucket_of(view.startup_ms)] += 1
    return {key: (count, watch_ms[key], tuple(sorted(startups[key].items()))) for key, count in views.items()}


def groups_stored(installation: Installation) -> Groups:
    """The same, from table `rollups`."""
    rows = installation.table(
        "rollups",
        "SELECT grain, start_ms, customer_id, dimensions, members, views, watch_ms::bigint,"
        " map_entries(startup_ms_histogram) FROM t",
    )
    found = {}
    for *key, members, views, watch_ms, histogram in rows:
        counts = tuple(sorted((entry["key"], entry["value"]) for entry in histogram))
        assert (*key, tuple(members)) not in found, "a group stands twice"
        found[*key, tuple(members)] = (views, watch_ms, counts)
    return found


def groups_served(installation: Installation) -> Groups:
    """The same, from the serving database."""
    rows = installation.serving(
        "SELECT grain, extract(epoch FROM start)::bigint * 1000, customer_id, dimensions, members, views, watch_ms::bigint,"
        " startup_ms_buckets, startup_ms_counts FROM serving.rollups"
    )
    return {
        (*key, tuple(members)): (views, watch_ms, tuple(zip(buckets, counts, strict=True)))
        for *key, members, views, watch_ms, buckets, counts in rows
    }


def expect_raw(installation: Installation, sent: Iterable[RawRecord]) -> None:
    """Asserts that the raw tables hold exactly these records, each once."""
    wanted: dict[str, list[tuple[int, bytes, bytes]]] = {table: [] for table in RAW_TABLES.values()}
    for one in sent:
        wanted[RAW_TABLES[one.topic]].append((one.partition, one.key, one.value))
    for table, records in wanted.items():
        found = installation.table(table, "SELECT kafka_partition, key, value, kafka_offset FROM t")
        assert sorted(row[:3] for row in found) == sorted(records), table
        assert len({(row[0], row[3]) for row in found}) == len(found), table


def ended_ms(view: View) -> int:
    """When a view counts, computed here: at its end, no earlier than a day before its beacons nor later than an hour after."""
    earliest, latest = view.first_append_ms - 24 * HOUR_MS, view.last_append_ms + HOUR_MS
    return min(max(view.view_end_ms, earliest), latest)


def hour_of(view: View) -> int:
    """The rollup hour of a view."""
    return ended_ms(view) // HOUR_MS


def buckets_of(truth: list[View]) -> Mapping[tuple[Any, ...], int]:
    """(hour, customer, metric, bucket) -> how many views."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for view in truth:
        if view.deleted:
            continue
        place = (hour_of(view), view.customer_id)
        if view.startup_ms is not None:
            counts[*place, "startup_ms", bucket_of(view.startup_ms)] += 1
        counts[*place, "rebuffer_ms", bucket_of(view.rebuffer_ms)] += 1
    return counts


def buckets_served(installation: Installation) -> Mapping[tuple[Any, ...], int]:
    """The same, as the dashboard reads it."""
    return {tuple(row[:4]): row[4] for row in installation.serving(BUCKETS)}
