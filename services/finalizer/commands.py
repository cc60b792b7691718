"""The finalizer's jobs other than the stream: the arguments and the output of each.

Jobs that write `views` refuse to run while the stream runs. Kafka keeps the records that arrive meanwhile.
"""

import argparse
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from services.finalizer.driver import clock_ms, spark_session, writing
from services.finalizer.jobs import reprocess, swap
from services.finalizer.jobs.compare import compare
from services.finalizer.jobs.export import FORMATS, TABLES, export
from services.finalizer.jobs.maintenance import Maintenance, MaintenanceFailed
from services.finalizer.jobs.publish import publish
from services.finalizer.jobs.reprocess import day_of
from services.finalizer.jobs.rounds import Rounds
from services.finalizer.serving import reprocess_lock
from services.finalizer.settings import FinalizerSettings
from services.finalizer.warehouse import tables


@dataclass(frozen=True)
class Job:
    """One run of a job."""

    settings: FinalizerSettings
    stop: threading.Event
    given: argparse.Namespace
    environ: Mapping[str, str]


Run = Callable[[Job], None]
#: Generation 1 is what processors write before any other was made.
GENERATION_MIN: Final = 2


def add_to(jobs: Any) -> None:
    """Adds the jobs to the command line."""
    again = _add(jobs, "reprocess", _reprocess, "fold views again from bronze, beside those that are read, and compare")
    again.add_argument("--from", dest="first", type=_day, required=True, help="first day, as 2026-02-02 (UTC)")
    again.add_argument("--to", dest="last", type=_day, required=True, help="last day, included")
    again.add_argument("--generation", type=_generation, required=True, help="a number larger than any before")
    for name, run, about in (
        ("compare", _compare, "report what swapping a generation in would change"),
        ("swap", _swap, "bring a generation to all readers"),
        ("swap-back", _swap_back, "take a swap back"),
    ):
        _add(jobs, name, run, about).add_argument("--generation", type=_generation, required=True)
    out = _add(jobs, "export", _export, "write a day of a table to CSV or Parquet")
    out.add_argument("--table", choices=sorted(TABLES), default=tables.VIEWS.name)
    out.add_argument("--day", type=_day, required=True, help="of views: of their first beacon (UTC)")
    out.add_argument("--format", choices=FORMATS, default="csv")
    out.add_argument("--to", required=True, help="a folder that does not exist")
    _add(jobs, "maintain", _maintain, "one round of compaction, retention and vacuum")
    _add(jobs, "publish", _publish, "fill an empty serving database from the warehouse")


def refuse_wrong(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Ends the process where single arguments are right and do not go together."""
    if given.run is _reprocess and given.first > given.last:
        parser.error("--from is after --to")


def _add(jobs: Any, name: str, run: Run, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = jobs.add_parser(name, help=about)
    parser.set_defaults(run=run)
    return parser


def _day(text: str) -> int:
    try:
        return day_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day as 2026-02-02") from None


def _generation(text: str) -> int:
    if not text.isdecimal() or int(text) < GENERATION_MIN:
        raise argparse.ArgumentTypeError(f"a generation is a number from {GENERATION_MIN} on, not {text!r}")
    return int(text)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)  # noqa: T201 - the job's output


def _reprocess(job: Job) -> None:
    with reprocess_lock.hold(job.settings.postgres_dsn.get_secret_value()), spark_session(job.settings) as spark:
        # Only its own table is written: the stream may go on.
        days = (job.given.first, job.given.last)
        made = reprocess.make(spark, job.settings.warehouse_dir, days, job.given.generation, job.environ)
        _print(
            [f"generation {job.given.generation}: {made.views:,} views made from bronze, {made.partial:,} only in part"]
        )
        if any(made):
            _print(compare(spark, job.settings.warehouse_dir, job.given.generation).lines())


def _compare(job: Job) -> None:
    with spark_session(job.settings) as spark:
        _print(compare(spark, job.settings.warehouse_dir, job.given.generation).lines())


def _swap(job: Job) -> None:
    with writing(job.settings, job.stop) as driver:
        _print(
            [
                f"{swap.swap(driver, job.given.generation):,} views of generation {job.given.generation} are read from now on"
            ]
        )


def _swap_back(job: Job) -> None:
    with writing(job.settings, job.stop) as driver:
        _print(
            [
                f"{swap.swap_back(driver, job.given.generation):,} views stand as without generation {job.given.generation}"
            ]
        )


def _export(job: Job) -> None:
    with spark_session(job.settings) as spark:
        table = TABLES[job.given.table]
        rows = export(
            spark, table.path(job.settings.warehouse_dir), job.given.day, to=job.given.to, file_format=job.given.format
        )
        _print([f"{rows:,} rows of {table.name} in {job.given.to}"])


def _maintain(job: Job) -> None:
    with writing(job.settings, job.stop) as driver:
        rounds = Rounds(driver.serving, job.settings.maintenance_seconds, clock_ms)
        kept = tables.those_of(job.settings.row_topics)
        maintenance = Maintenance.of(
            job.settings, kept, driver.earlier_ms, job.stop, serving=driver.serving, rounds=rounds
        )
        failed = maintenance.run(driver.spark)
        if failed:
            raise MaintenanceFailed(f"not maintained: {', '.join(failed)}; the log says why")


def _publish(job: Job) -> None:
    with writing(job.settings, job.stop) as driver:
        _print([f"{publish(driver):,} slices published from the warehouse"])
