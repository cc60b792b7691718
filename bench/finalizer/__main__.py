"""What the finalizer costs: `python -m bench.finalizer [--only PART ...] [--rows N] [--batch N] [--whole N] [--beacons N]`.

Prints seconds and rows a second of: a batch merged into a small and into a large table; the whole path of a batch (bronze, views,
rollups, serving); a reprocess, beside the same table read and sorted alone; and the page's queries over a year of hourly rollups of
100 customers. Other load on the machine falls on all of it. Sizes by default fit minutes; `--rows 10000000` shows growth.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psycopg
from pyspark.sql import DataFrame, SparkSession

from bench.finalizer import inputs
from deploy.local.paths import SPARK_JARS
from deploy.local.postgres import Postgres
from services.dashboard.queries import PostgresServing
from services.finalizer import session, tables
from services.finalizer.jobs import reprocess, warehouse
from services.finalizer.jobs.landing import Landing
from services.finalizer.jobs.raw import RawLanding
from services.finalizer.migrate import migrate
from services.finalizer.serving import Serving
from services.finalizer.settings import FinalizerSettings
from services.finalizer.transforms.views import latest_per_view, parse
from services.rim.crash_points import CrashPoints

PARTS: Final = ("merges", "whole", "reprocess", "queries")
ROUNDS: Final = 3
QUERY_ROUNDS: Final = 60


def main(arguments: list[str]) -> int:
    """Runs all of it in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000, help="views in the large table; the small one has a fifth")
    parser.add_argument("--batch", type=int, default=10_000, help="views merged at once")
    parser.add_argument("--whole", type=int, default=20_000, help="views of a batch through the whole path")
    parser.add_argument("--beacons", type=int, default=100_000, help="beacons of a reprocess, ten a view")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    parser.add_argument("--memory", default="1400m", help="heap of the JVM")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, _postgres(Path(folder)) as dsn:
        settings = FinalizerSettings.load(
            {
                "FINALIZER_WAREHOUSE_DIR": f"{folder}/warehouse",
                "FINALIZER_CHECKPOINT_DIR": f"{folder}/checkpoint",
                "FINALIZER_JARS_DIR": str(SPARK_JARS),
                "FINALIZER_POSTGRES_DSN": dsn,
                "FINALIZER_DRIVER_MEMORY": given.memory,
                "FINALIZER_ROLLUP_BY": "country,cdn",
                "FINALIZER_RECENT_DAYS": "0",
            }
        )
        if set(given.only) != {"queries"}:
            _on_spark(settings, given)
        if "queries" in given.only:
            asyncio.run(_queries(dsn))
    return 0


def _on_spark(settings: FinalizerSettings, given: argparse.Namespace) -> None:
    spark = session.start(settings)
    try:
        tables.ensure(spark, settings.warehouse_dir, auto_compact=True)
        if "merges" in given.only:
            _merges(spark, settings, given.rows, given.batch)
        if "whole" in given.only:
            _whole_path(spark, settings, given.whole)
        if "reprocess" in given.only:
            _reprocess(spark, settings, given.beacons)
    finally:
        spark.stop()


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    server = Postgres(folder)
    try:
        server.start()
        yield server.create_database("bench")
    finally:
        server.remove()


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _told(what: str, seconds: list[float], rows: int) -> None:
    best = min(seconds)
    print(f"{what:58} {best:7.2f} s of {', '.join(f'{one:.2f}' for one in seconds)}   {rows / best:10,.0f} rows/s")


def _merges(spark: SparkSession, settings: FinalizerSettings, rows: int, batch: int) -> None:
    """The same batch size into a table of a fifth of the rows, and of all of them."""
    place = settings.warehouse_dir
    filled = 0
    for size in (rows // 5, rows):
        views = parse(inputs.view_records(spark, filled, size - filled))
        views.withColumn("landed_at_ms", views["kafka_timestamp_ms"]).select(
            tables.VIEWS.schema.fieldNames()
        ).write.format("delta").mode("append").save(tables.VIEWS.path(place))
        filled = size
        seconds = []
        for number in range(ROUNDS + 1):
            # Half of them are there already, in the last two days.
            first = size - batch // 2 + number * batch * 10
            landed = latest_per_view(
                parse(inputs.view_records(spark, size - batch // 2, batch // 2, revision=2 + number + size)).unionAll(
                    parse(inputs.view_records(spark, 10 * rows + first, batch - batch // 2))
                )
            ).persist()
            days = sorted(row["day"] for row in landed.select("day").distinct().collect())
            seconds.append(_seconds(lambda: _merge(spark, place, landed, days)))  # noqa: B023 - called at once
            landed.unpersist()
        _told(f"merge of {batch:,} views, half new, into {size:,}", seconds[1:], batch)


def _merge(spark: SparkSession, place: str, landed: DataFrame, days: list[int]) -> None:
    warehouse.merge_views(spark, place, landed, days, revises=True, landed_at_ms=0)


def _whole_path(spark: SparkSession, settings: FinalizerSettings, views: int) -> None:
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
    raw = RawLanding(settings.warehouse_dir, clock_ms=lambda: 0, crash_points=crash_points)
    bronze, whole = [], []
    for number in range(ROUNDS + 1):
        records = inputs.view_records(spark, 10**9 + number * views, views, day=inputs.DAY + 100 + number).persist()
        records.count()
        bronze.append(_seconds(lambda: raw(inputs.as_beacons(records), number)))  # noqa: B023 - called at once
        whole.append(bronze[-1] + _seconds(lambda: landing(records, number)))  # noqa: B023
        records.unpersist()
    serving.close()
    _told(f"append of {views:,} records to bronze", bronze[1:], views)
    _told(f"whole path of {views:,} views (bronze, views, rollups, serving)", whole[1:], views)


def _reprocess(spark: SparkSession, settings: FinalizerSettings, beacons: int) -> None:
    place = settings.warehouse_dir
    views = beacons // inputs.BEACONS_A_VIEW
    inputs.fill_bronze(spark, place, views)
    bronze = warehouse.read(spark, place, tables.BRONZE).where(f"day = {inputs.BRONZE_DAY}")
    shuffled = bronze.repartition("kafka_partition").sortWithinPartitions("kafka_partition", "kafka_offset")
    alone = [_seconds(lambda: shuffled.write.format("noop").mode("overwrite").save()) for _ in range(2)]
    folded = [
        _seconds(lambda: reprocess.folded(bronze, {}).write.format("noop").mode("overwrite").save()) for _ in range(2)
    ]
    made = reprocess.folded(bronze, {}).count()
    _told(f"{beacons:,} beacons read, shuffled, sorted", alone, beacons)
    _told(f"the same, folded into {made:,} views by the processor's core", folded, beacons)


async def _queries(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate(connection)
        inputs.fill_serving(connection)
    opened = PostgresServing(dsn, connections_max=1, seconds_max=60.0)
    await opened.open()
    try:
        for hours in (24, 24 * 7):
            since = datetime.fromtimestamp(inputs.SERVED_UNTIL_S, UTC) - timedelta(hours=hours)
            times = []
            for _ in range(QUERY_ROUNDS):
                began = time.monotonic()
                await opened.rollups_since(since)
                times.append((time.monotonic() - began) * 1000)
            times.sort()
            p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
            print(
                f"page's queries over the last {hours} h of a year, 100 customers     p50 {p50:.1f} ms, p95 {p95:.1f} ms"
            )
    finally:
        await opened.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
