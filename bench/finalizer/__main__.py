"""The cost of the finalizer: `python -m bench.finalizer [--only PART ...] [--rows N ...] [--batch N] [...]`, see `--help`.

`merges`: a batch merged into tables of different sizes; `rebuild`: slices counted again in them; `hour`: a large hour counted
again; `whole`: the whole path of a batch (bronze, views, rollups, serving); `small`, `growing`: batches under default settings;
`reprocess`: beacons folded by the processor's core, beside the same fold as SQL windows, both with the same hash; `queries`: the
page's queries over a year of hourly rollups of 100 customers. Each part checks its rows before it reports a figure, and stores its
figures. Compared parts alternate, and ratios are of CPU time. Default sizes need minutes; `--rows 1000000 5000000 10000000
--hour 1000000 --whole 100000 --growing 100000 --beacons 1000000 --codegen` is the full size.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pydantic

from bench.finalizer import batches, landing, queries, reprocessing
from bench.finalizer.timing import Wrong
from bench.report.results import Part, keep, table
from deploy.local.paths import SPARK_JARS
from deploy.local.postgres import Postgres
from services.finalizer.settings import FinalizerSettings
from services.finalizer.warehouse import session

PARTS: Final = ("merges", "rebuild", "hour", "whole", "small", "growing", "reprocess", "queries")


def main(arguments: list[str]) -> int:
    """Runs the parts in a temporary folder; 1 when one came to wrong rows."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.finalizer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[200_000, 1_000_000], help="views in the tables that are compared"
    )
    parser.add_argument("--batch", type=int, default=10_000, help="views merged at once")
    parser.add_argument("--slices", type=int, default=100, help="slices counted again at once")
    parser.add_argument("--hour", type=int, default=200_000, help="views of the large hour")
    parser.add_argument("--whole", type=int, default=20_000, help="views of a batch through the whole path")
    parser.add_argument("--growing", type=int, default=20_000, help="views of each batch into the hour that grows")
    parser.add_argument("--beacons", type=int, default=200_000, help="beacons of a reprocess, ten a view")
    parser.add_argument("--days", type=int, default=365, help="days of hourly rollups that are served")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    parser.add_argument("--memory", default="2g", help="heap of the JVM")
    parser.add_argument("--codegen", action="store_true", help="let Spark compile its plans (FINALIZER_CODEGEN)")
    given = parser.parse_args(arguments)
    print(f"{os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.2f}")
    found: list[Part] = []
    with tempfile.TemporaryDirectory(prefix="bench-finalizer-") as folder, _postgres(Path(folder)) as server:
        settings = FinalizerSettings.load(
            {
                "FINALIZER_WAREHOUSE_DIR": f"{folder}/warehouse",
                "FINALIZER_CHECKPOINT_DIR": f"{folder}/checkpoint",
                "FINALIZER_JARS_DIR": str(SPARK_JARS),
                "FINALIZER_POSTGRES_DSN": server.create_database("bench"),
                "FINALIZER_DRIVER_MEMORY": given.memory,
                "FINALIZER_ROLLUP_BY": "country,cdn",
                "FINALIZER_RECENT_DAYS": "0",
                "FINALIZER_CODEGEN": str(given.codegen).lower(),
            }
        )
        try:
            for part in _parts(settings, given, server):
                keep(part)
                found.append(part)
        except Wrong as wrong:
            print(f"wrong, so no figure is printed: {wrong}", file=sys.stderr)
            return 1
    print("\n".join(table(found)))
    return 0


def _parts(settings: FinalizerSettings, given: argparse.Namespace, server: Postgres) -> Iterator[Part]:
    if set(given.only) != {"queries"}:
        yield from _on_spark(settings, given, server)
    if "queries" in given.only:
        yield asyncio.run(queries.run(server.create_database("year"), given.days))


def _by_default(settings: FinalizerSettings, server: Postgres, name: str) -> FinalizerSettings:
    """All dimensions, in a warehouse and a database of their own."""
    changed = {
        "warehouse_dir": f"{settings.warehouse_dir}-{name}",
        "postgres_dsn": pydantic.SecretStr(server.create_database(name)),
        "rollup_by": FinalizerSettings.model_fields["rollup_by"].default,
    }
    return settings.model_copy(update=changed)


def _on_spark(settings: FinalizerSettings, given: argparse.Namespace, server: Postgres) -> Iterator[Part]:
    spark = session.start(settings)
    try:
        if {"merges", "rebuild"} & set(given.only):
            grown = landing.fill(spark, settings, given.rows)
            if "merges" in given.only:
                yield landing.merges(spark, grown, given.batch)
            if "rebuild" in given.only:
                yield landing.rebuilds(spark, settings, grown, given.slices)
        if "hour" in given.only:
            yield landing.large_hour(spark, settings, given.hour)
        # The whole path before the beacons of the reprocess, which are in table bronze too.
        if "whole" in given.only:
            yield landing.whole_path(spark, settings, given.whole)
        for name, run in (("small", batches.small), ("growing", partial(batches.growing, views=given.growing))):
            if name in given.only:
                yield run(spark, _by_default(settings, server, name))
        if "reprocess" in given.only:
            yield reprocessing.run(spark, settings, given.beacons)
    finally:
        spark.stop()


@contextmanager
def _postgres(folder: Path) -> Iterator[Postgres]:
    server = Postgres(folder)
    try:
        server.start()
        yield server
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
