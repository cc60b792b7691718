"""What the finalizer's tests share: views with a known truth, and the process under test."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.request import urlopen

import duckdb
import psycopg
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder

from deploy.local import short_spark
from deploy.local.paths import SPARK_JARS
from deploy.local.ports import free_port
from deploy.local.process import Child, wait_until
from shared.codec import VIEW
from shared.partitioning import partition_of, view_key
from shared.schemas.view import View
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.installed import PARTITIONS, variables

#: A morning in 2026 at which all test views begin, ms since 1970.
MORNING_MS = 1_770_012_000_000
HOUR_MS = 3_600_000
START_SECONDS_MAX = 240.0
#: Five cold JVMs take 110 CPU seconds for one run, and have an eighth of two cores while all others compute.
RUN_SECONDS_MAX = 900.0
#: A broker on a busy machine takes its time with a transaction.
_PRODUCER_SECONDS_MAX = 120.0
#: `source` is always there.
ROLLUP_BY = "source,country+device"


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


def raw_records(count: int, first: int = 0) -> list[RawRecord]:
    """Records of the three topics that are kept as they are, over three partitions, some with headers."""
    topics = (BEACONS.name, BEACONS.name, LATE.name, REJECTED.name)
    return [
        RawRecord(
            topics[number % 4],
            number % 3,
            f"acme:{number}".encode(),
            b"\xff%d" % number,
            (("reason", b"invalid"), ("detail", b"\xc3")) if topics[number % 4] == REJECTED.name else (),
        )
        for number in range(first, first + count)
    ]


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
            partition = partition_of(key, PARTITIONS)
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
    #: Has the Spark of each `run_once`; without it that is in a JVM of its own.
    jvm: WarmJvm | None = None

    def environment(self, **settings: str) -> dict[str, str]:
        """What a finalizer process is given."""
        return {
            **os.environ,
            **short_spark.environment(),
            **variables(self.bootstrap),
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

    def child(self, job: str, environ: Mapping[str, str] = MappingProxyType({}), **settings: str) -> Child:
        """A finalizer process, not yet started, with these further environment variables."""
        argv = [sys.executable, "-m", "services.finalizer", *job.split()]
        env = {**self.environment(**settings), **environ}
        return Child(f"finalizer {job}", argv, log_file=self.folder / "finalizer.log", env=env)

    def run_once(self, **settings: str) -> int | None:
        """Lands what the topic holds; the exit code."""
        with self.running("stream --once", jvm=self.jvm, **settings) as child:
            wait_for_exit(child)
            return child.exit_code

    @contextmanager
    def running(self, job: str, *, jvm: WarmJvm | None = None, **settings: str) -> Iterator[Child]:
        """A finalizer process that is killed at the end if it still runs; its Spark is in `jvm`, or in a JVM of its own."""
        child = self.child(job, {} if jvm is None else jvm.take(), **settings)
        try:
            child.start()
            yield child
        finally:
            child.kill()
            if jvm is not None:
                jvm.give_back()

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

    def batches(self) -> float:
        """How many batches of views a running process has landed."""
        name = 'playhead_finalizer_batches_total{stream="views"} '
        lines = [line for line in self.metrics().splitlines() if line.startswith(name)]
        return float(lines[0].split()[1]) if lines else 0.0

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
