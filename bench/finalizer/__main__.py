"""What the finalizer costs: `python -m bench.finalizer [--only PART ...] [--rows N ...] [--batch N] [--whole N] [--beacons N]`.

`merges`: a batch merged into tables of different sizes; `rebuild`: slices counted anew in them; `whole`: the whole path of a batch
(bronze, views, rollups, serving); `reprocess`: beacons folded by the processor's core, beside the same fold as SQL windows, both
with the same hash; `queries`: the page's queries over a year of hourly rollups of 100 customers. Other load on the machine falls
on all of it. Sizes by default fit minutes; `--rows 1000000 5000000 10000000` shows growth.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.finalizer import landing, queries, reprocessing
from deploy.local.paths import SPARK_JARS
from deploy.local.postgres import Postgres
from services.finalizer import session, tables
from services.finalizer.settings import FinalizerSettings

PARTS: Final = ("merges", "rebuild", "whole", "queries", "reprocess")


def main(arguments: list[str]) -> int:
    """Runs the parts in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[80_000, 400_000], help="views in the table, the smallest first"
    )
    parser.add_argument("--batch", type=int, default=10_000, help="views merged at once")
    parser.add_argument("--slices", type=int, default=100, help="slices counted anew at once")
    parser.add_argument("--whole", type=int, default=20_000, help="views of a batch through the whole path")
    parser.add_argument("--beacons", type=int, default=100_000, help="beacons of a reprocess, ten a view")
    parser.add_argument("--days", type=int, default=365, help="days of hourly rollups that are served")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    parser.add_argument("--memory", default="1400m", help="heap of the JVM")
    given = parser.parse_args(arguments)
    print(f"{os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.2f}")
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
            asyncio.run(queries.run(dsn, given.days))
    print(f"load average at the end {os.getloadavg()[0]:.2f}")
    return 0


def _on_spark(settings: FinalizerSettings, given: argparse.Namespace) -> None:
    spark = session.start(settings)
    try:
        tables.ensure(spark, settings.warehouse_dir, auto_compact=True)
        if {"merges", "rebuild"} & set(given.only):
            batch, slices = (
                size if part in given.only else 0 for part, size in (("merges", given.batch), ("rebuild", given.slices))
            )
            landing.merges(spark, settings, sorted(given.rows), batch=batch, slices=slices)
        if "whole" in given.only:
            landing.whole_path(spark, settings, given.whole)
        if "reprocess" in given.only:
            reprocessing.run(spark, settings.warehouse_dir, given.beacons)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
