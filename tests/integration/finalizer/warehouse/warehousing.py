"""A warehouse in the tests' own Spark session: batches without Kafka, deaths without a process."""

import random
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from deploy.local.paths import SPARK_JARS
from services.finalizer.driver import Driver, rebuilding_of
from services.finalizer.row_topics import RowTopic
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import first_kept_hour
from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming.landing import Landing
from services.finalizer.streaming.raw import RawLanding
from services.finalizer.streaming.rows import RowLanding
from services.finalizer.warehouse import tables
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.driver import Driver as Fold
from services.rim.process.crash_points import CrashPoint, CrashPoints
from shared.codec import BEACON, VIEW
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from shared.topics import BEACONS, VIEWS
from tests.integration.finalizer.finalizing import HOUR_MS, MORNING_MS, ROLLUP_BY, Installation, a_view
from tests.unit.processor.applications.video_views.beacons import T0, mux, watch

DAY_MS = 24 * HOUR_MS
_SCHEMA = "topic string, partition int, offset long, at_ms long, key binary, value binary"
#: By now, on the clock of these tests, all of their views are over.
NOW_MS = 1_790_100_000_000


class Died(Exception):
    """What stands for the death of the process."""


class Dies(CrashPoints):
    """Dies at a point, once."""

    def __init__(self, point: str | None = None) -> None:
        super().__init__()
        self.point = point

    def reach(self, here: CrashPoint) -> None:
        if here == self.point:
            self.point = None
            raise Died(here)


def finalizer_settings(folder: Path, dsn: str, **settings: str) -> FinalizerSettings:
    """Settings of a warehouse in a folder."""
    given = {
        "warehouse_dir": str(folder / "warehouse"),
        "checkpoint_dir": str(folder / "checkpoint"),
        "jars_dir": str(SPARK_JARS),
        "postgres_dsn": dsn,
        "rollup_by": ROLLUP_BY,
        "recent_days": "10000",
        "driver_memory": "1g",
        **settings,
    }
    return FinalizerSettings.load({f"FINALIZER_{name.upper()}": value for name, value in given.items()})


@dataclass
class Warehouse:
    """The finalizer's code on tables and a serving database of one's own."""

    spark: SparkSession
    settings: FinalizerSettings
    folder: Path
    dies: Dies = field(default_factory=Dies)
    driver: Driver = field(init=False)
    installation: Installation = field(init=False)
    _offset: int = 0
    _batch: int = 0

    def __post_init__(self) -> None:
        dsn = self.settings.postgres_dsn.get_secret_value()
        stop = threading.Event()
        serving = Serving(dsn, away_seconds_max=20, stop=stop)
        serving.open()
        serving.keep_views(first_kept_hour(NOW_MS, self.settings.recent_days))
        # A copy of tables has what all have: to look would take dozens of statements.
        if not Path(self.settings.warehouse_dir).exists():
            tables.ensure(self.spark, self.settings.warehouse_dir, auto_compact=False)
        landing = Landing(
            self.settings.warehouse_dir,
            serving,
            bytes_max=self.settings.batch_bytes_max,
            clock_ms=lambda: NOW_MS,
            crash_points=self.dies,
        )
        rebuilding = rebuilding_of(self.settings, serving, landing, clock_ms=lambda: NOW_MS, crash_points=self.dies)
        self.driver = Driver(self.settings, self.spark, serving, landing, rebuilding, self.dies, stop)
        self.installation = Installation(self.folder, "", dsn)

    def close(self) -> None:
        """Gives the serving database back."""
        self.driver.serving.close()

    def with_settings(self, **changed: object) -> Driver:
        """The driver under other settings."""
        return replace(self.driver, settings=self.settings.model_copy(update=changed))

    def land(self, views: Iterable[View], *, dies_at: str | None = None, rebuilds: bool = True) -> None:
        """Lands views as one batch of topic `views`; with `dies_at`, again after a death there.

        Unless it `rebuilds`, what it made dirty stays so for the next batch: most of a small batch's CPU time is its rollups.
        """
        records = [(view_key(view.customer_id, view.view_id), VIEW.encode(view), NOW_MS) for view in views]
        batch = self._records(VIEWS.name, records)
        self._batch += 1
        if dies_at is not None:
            self.dies.point = dies_at
            with suppress(Died):
                self._land(batch, rebuilds=rebuilds)
        self._land(batch, rebuilds=rebuilds)

    def _land(self, batch: DataFrame, *, rebuilds: bool) -> None:
        self.driver.landing(batch, self._batch)
        if rebuilds:
            self.driver.rebuilding.rebuild_dirty(self.spark, "test")

    def land_raw(
        self, beacons: Iterable[Beacon], *, topic: str = BEACONS.name, partition: int = 0, topic_id: str = "topic"
    ) -> None:
        """Lands beacons as one batch of their topic, appended two seconds after the client's clock."""
        records = [
            (view_key(one.customer_id, one.view_id), BEACON.encode(one), one.client_time_ms + 2_000) for one in beacons
        ]
        batch = self._records(topic, records, partition)
        self._batch += 1
        raw = RawLanding(
            self.settings.warehouse_dir, topic, topic_id, clock_ms=lambda: NOW_MS, crash_points=CrashPoints()
        )
        raw(batch.withColumn("headers", sf.lit(None).cast("array<struct<key:string,value:binary>>")), self._batch)

    def land_rows(self, topic: RowTopic, values: Iterable[bytes], *, at_ms: int = NOW_MS) -> None:
        """Lands records of an application's topic, appended at one time, as one batch; its table is made when it is not there."""
        if not Path(tables.ROWS[topic.name].path(self.settings.warehouse_dir)).exists():
            tables.ensure(self.spark, self.settings.warehouse_dir, auto_compact=False, rows_of=[topic])
        batch = self._records(topic.name, [(b"key", value, at_ms) for value in values])
        self._batch += 1
        RowLanding(self.settings.warehouse_dir, topic, clock_ms=lambda: NOW_MS, crash_points=CrashPoints())(
            batch, self._batch
        )

    def _records(self, topic: str, records: Iterable[tuple[bytes, bytes, int]], partition: int = 0):  # type: ignore[no-untyped-def]
        """Records as the Kafka source gives them."""
        rows = []
        for key, value, at_ms in records:
            rows.append((topic, partition, self._offset, at_ms, bytearray(key), bytearray(value)))
            self._offset += 1
        # In as many parts as it is: one part needs no exchange.
        parts = int(self.spark.conf.get("spark.sql.leafNodeDefaultParallelism") or 1)
        frame = self.spark.createDataFrame(rows, _SCHEMA).coalesce(parts)
        return frame.withColumn("timestamp", sf.timestamp_millis("at_ms")).drop("at_ms")


def somewhere(chance: random.Random, name: str, revision: int, *, deleted: bool = False) -> View:
    """A revision of a view that ended at some hour of four days. Its partition day depends on its name alone."""
    began = random.Random(name).randrange(3)
    return a_view(
        name,
        customer=f"customer_{len(name) % 3}",
        # Of one revision there is one row.
        revision=revision * 1_000_000 + chance.randrange(1_000_000),
        hour=24 * began + chance.randrange(30),
        day=MORNING_MS // DAY_MS + began,
        first_append_ms=MORNING_MS + began * DAY_MS,
        last_append_ms=MORNING_MS + began * DAY_MS + 30 * HOUR_MS,
        deleted=deleted,
        cdn=chance.choice(["fast", "near", None]),
        country="DE",
        startup_ms=chance.randrange(5_000),
        watch_ms=chance.randrange(600_000),
    )


def beacons_of(names: str) -> list[Beacon]:
    """A whole view for each name, a minute apart, then a beacon of hours later that lets the clock run."""
    found = []
    for number, name in enumerate(names):
        for one in watch():
            at_ms = one.client_time_ms - T0 + number * 60_000
            viewer = {"mux_viewer_id": viewer_of(name)} if one.event == "viewstart" else {}
            found.append(mux(one.seq or 0, one.event, at_ms, view_id=name, **one.attrs | viewer))
    return [*found, mux(1, "viewstart", 3 * HOUR_MS, view_id="last")]


def viewer_of(name: str) -> str:
    """The id of the viewer of a view: one of them is part of the others."""
    return "viewer b" if name == "b" else f"viewer b and {name}"


def finished(beacons: list[Beacon]) -> list[View]:
    """What the processor makes of them."""
    fold = Fold(APPLICATIONS["video_views"]({}))
    for one in beacons:
        key = view_key(one.customer_id, one.view_id)
        fold.pipe(BEACONS, key, BEACON.encode(one), at_ms=one.client_time_ms + 2_000)
    return [VIEW.decode(output.value) for output in fold.outputs(VIEWS)]


def generations(warehouse: Warehouse) -> dict[str, int]:
    """Of every view in table `views` the generation of its row."""
    return dict(warehouse.installation.table("views", "SELECT view_id, generation FROM t"))
