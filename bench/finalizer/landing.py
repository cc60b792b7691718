"""What landing costs: a merge and a rebuild as the table grows, and the whole path of a batch."""

import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bench.finalizer import inputs
from bench.finalizer.timing import ROUNDS, seconds, tell
from services.finalizer import tables
from services.finalizer.jobs import rollups, warehouse
from services.finalizer.jobs.landing import Landing
from services.finalizer.jobs.raw import RawLanding
from services.finalizer.serving import Serving
from services.finalizer.settings import FinalizerSettings
from services.finalizer.transforms.views import latest_per_view, parse
from services.rim.crash_points import CrashPoints
from shared.topics import BEACONS


def merges(spark: SparkSession, settings: FinalizerSettings, sizes: Sequence[int], *, batch: int, slices: int) -> None:
    """The same batch merged into, and the same slices counted anew in, a table of each of these sizes. 0: not that one."""
    place = settings.warehouse_dir
    filled = 0
    for size in sizes:
        views = parse(inputs.view_records(spark, filled, size - filled))
        views.withColumn("landed_at_ms", views["kafka_timestamp_ms"]).select(
            tables.VIEWS.schema.fieldNames()
        ).write.format("delta").mode("append").save(tables.VIEWS.path(place))
        filled = size
        if batch:
            _merge_batches(spark, place, size, batch)
        if slices:
            wanted = inputs.slices_of(spark, place, slices)
            rounds = [seconds(lambda: rollups.rebuild(spark, place, wanted, settings.sets)) for _ in range(ROUNDS + 1)]  # noqa: B023
            tell(
                f"rebuild of {len(wanted):,} slices of the newest day, {size:,} views",
                rounds[1:],
                len(wanted),
                "slices",
            )


def _merge_batches(spark: SparkSession, place: str, size: int, batch: int) -> None:
    rounds = []
    half = batch // 2
    for number in range(ROUNDS + 1):
        # Half of them are there already, in the last days; the others are new there.
        again = inputs.view_records(spark, max(0, size - half), half, revision=2 + number + size)
        new = inputs.view_records(spark, 10**9 + size * 10 + number * batch, batch - half, like=size)
        landed = latest_per_view(parse(again.unionAll(new))).persist()
        days = sorted(row["day"] for row in landed.select("day").distinct().collect())
        rounds.append(
            seconds(lambda: warehouse.merge_views(spark, place, landed, days, revises=True, landed_at_ms=0))  # noqa: B023
        )
        landed.unpersist()
    tell(f"merge of {batch:,} views, half new, into {size:,}", rounds[1:], batch, "views")


def whole_path(spark: SparkSession, settings: FinalizerSettings, views: int) -> None:
    """A batch of new views through bronze, views, rollups and serving."""
    serving = Serving(settings.postgres_dsn.get_secret_value(), away_seconds_max=20, stop=threading.Event())
    serving.open()
    crash_points = CrashPoints()
    landing = Landing(
        settings.warehouse_dir,
        serving,
        slices_max=settings.slices_max,
        sets=settings.sets,
        recent_days=0,
        clock_ms=lambda: 0,
        crash_points=crash_points,
    )
    raw = RawLanding(settings.warehouse_dir, BEACONS.name, "bench", clock_ms=lambda: 0, crash_points=crash_points)
    bronze, whole = [], []
    for number in range(ROUNDS + 1):
        records = inputs.view_records(spark, 2 * 10**9 + number * views, views, day=inputs.DAY + 900 + number).persist()
        records.count()
        bronze.append(seconds(lambda: raw(inputs.as_beacons(records), number)))  # noqa: B023 - called at once
        whole.append(bronze[-1] + seconds(lambda: landing(records, number)))  # noqa: B023
        records.unpersist()
    serving.close()
    tell(f"append of {views:,} records to bronze", bronze[1:], views, "records")
    tell(f"whole path of {views:,} views (bronze, views, rollups, serving)", whole[1:], views, "views")
