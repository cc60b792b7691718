"""Batches as an installation has them by default: all dimensions, hot rows of seven days, and several into the same hour."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from bench.finalizer import checks, inputs
from bench.finalizer.timing import Took, best, head, print_rounds, row, took
from bench.report.results import Part, against
from services.finalizer.driver import rebuilding_of
from services.finalizer.serving.database import Serving
from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming.landing import Landing
from services.finalizer.streaming.raw import RawLanding
from services.finalizer.streaming.rebuilding import Rebuilding
from services.finalizer.transforms.views import HOUR_MS
from services.finalizer.warehouse import tables
from services.rim.process.crash_points import CrashPoints
from shared.topics import BEACONS

SMALL: Final = 200
#: CPU time of a small batch that is the goal.
SMALL_GOAL_S: Final = 6.0
#: Views a second, of an hour of ten batches, that are the goal on two quiet cores.
GROWING_GOAL: Final = 10_000
#: The last batch into an hour may cost so many times the first.
GROWTH_MAX: Final = 1.25
BATCHES: Final = 10
#: The JVM compiles what it runs often: a service that has run for some minutes is what is measured.
_WARM: Final = 6
_MEASURED: Final = 5


def small(spark: SparkSession, settings: FinalizerSettings) -> Part:
    """Batches of few views, each into the slices of one hour, and what a round costs that counts these again."""
    landed, counted, jobs, jobs_counted = [], [], [], []
    with closing(_serving(settings)) as serving:
        landing, rebuilding = _writers(spark, settings, serving)
        for number in range(_WARM + _MEASURED):
            records = _records(spark, number * SMALL, SMALL, number * (HOUR_MS // 20))
            before = _jobs(spark)
            landed.append(took(lambda: landing(records, number)))  # noqa: B023 - called at once
            jobs.append(_jobs(spark) - before)
            before = _jobs(spark)
            counted.append(took(lambda: rebuilding.rebuild_dirty(spark, "bench")))
            jobs_counted.append(_jobs(spark) - before)
            records.unpersist()
    checks.landed(settings.warehouse_dir, settings.postgres_dsn.get_secret_value(), SMALL * (_WARM + _MEASURED))
    batches, rounds = landed[_WARM:], counted[_WARM:]
    share = settings.trigger_seconds / settings.rollup_seconds
    with_share = best(batches).cpu_seconds + share * best(rounds).cpu_seconds
    print_rounds(f"batch of {SMALL} views, {min(jobs[_WARM:])} Spark jobs", batches, SMALL, "views")
    print_rounds(f"round that counts its {inputs.CUSTOMERS} slices", rounds, SMALL, "views")
    return Part(
        name="finalizer-small",
        title="Finalizer: small batches",
        command="python -m bench.finalizer --only small",
        checked="every view once, rollups and the serving copy equal a recount by another implementation",
        compared=[
            against(
                f"batch of {SMALL} views into {inputs.CUSTOMERS} slices, CPU seconds, to {SMALL_GOAL_S:g}",
                best(batches).cpu_seconds / SMALL_GOAL_S,
                1.0,
                at_most=True,
            ),
            against(
                f"the same with its share of the rounds that count, by default {share:g} of one, to {SMALL_GOAL_S:g}",
                with_share / SMALL_GOAL_S,
                1.0,
                at_most=True,
            ),
        ],
        lines=[
            (
                f"{SMALL} new views of {inputs.CUSTOMERS} customers a batch, all default dimensions, hot rows too; best of"
                f" {_MEASURED} after {_WARM} others. A batch takes {min(jobs[_WARM:])} Spark jobs, a round"
                f" {min(jobs_counted[_WARM:])}. A round counts what has changed, every FINALIZER_ROLLUP_SECONDS for all batches"
                " since the last."
            ),
            "",
            *head("views"),
            row("a batch", batches, SMALL),
            row("a round", rounds, SMALL),
        ],
    )


def growing(spark: SparkSession, settings: FinalizerSettings, views: int) -> Part:
    """An hour of ten batches, each followed by the round that counts it: also bronze, as beacons are kept."""
    raw = RawLanding(settings.warehouse_dir, BEACONS.name, "bench", clock_ms=lambda: 0, crash_points=CrashPoints())
    costs: list[Took] = []
    with closing(_serving(settings)) as serving:
        landing, rebuilding = _writers(spark, settings, serving)

        def work(records: DataFrame, number: int) -> Callable[[], None]:
            def land() -> None:
                raw(inputs.as_beacons(records), number)
                landing(records, number)
                rebuilding.rebuild_dirty(spark, "bench")

            return land

        # An hour before, in which the JVM compiles.
        for number in range(3):
            records = _records(spark, 10**9 + number * views, views, number * (HOUR_MS // BATCHES) - HOUR_MS)
            work(records, number)()
            records.unpersist()
        for number in range(BATCHES):
            records = _records(spark, number * views, views, number * (HOUR_MS // BATCHES))
            costs.append(took(work(records, number + 3)))
            print_rounds(f"batch {number + 1} of {views:,} views into the hour", costs[-1:], views, "views")
            records.unpersist()
    checks.landed(settings.warehouse_dir, settings.postgres_dsn.get_secret_value(), views * (BATCHES + 3))
    seconds = sum(one.seconds for one in costs)
    # Two batches each: one alone may be disturbed.
    first, last = (min(one.cpu_seconds for one in costs[at : at + 2]) for at in (0, BATCHES - 2))
    return Part(
        name="finalizer-growing",
        title="Finalizer: an hour that grows",
        command=f"python -m bench.finalizer --only growing --growing {views}"
        + (" --codegen" if settings.codegen else ""),
        checked="every view once, rollups and the serving copy equal a recount by another implementation",
        compared=[
            against(
                f"{BATCHES} batches of {views:,} views into one hour, views a second, to {GROWING_GOAL:,}",
                views * BATCHES / seconds / GROWING_GOAL,
                1.0,
            ),
            against("the last batch into the hour, to the first (CPU)", last / first, GROWTH_MAX, at_most=True),
        ],
        lines=[
            (
                f"Views of {inputs.CUSTOMERS} customers, of six minutes a batch: bronze, views, hot rows of seven days, and a round"
                " that counts what has changed: rollups by minute, hour and day by all default dimensions, and Postgres."
            ),
            "",
            *head("views"),
            *(row(f"batch {number + 1}", [one], views) for number, one in enumerate(costs)),
        ],
    )


def _serving(settings: FinalizerSettings) -> Serving:
    serving = Serving(settings.postgres_dsn.get_secret_value(), away_seconds_max=20, stop=threading.Event())
    serving.open()
    serving.keep_views((inputs.DAY - 1) * 24)
    return serving


def _writers(spark: SparkSession, settings: FinalizerSettings, serving: Serving) -> tuple[Landing, Rebuilding]:
    tables.ensure(spark, settings.warehouse_dir, auto_compact=settings.auto_compact)
    landing = Landing(
        settings.warehouse_dir,
        serving,
        bytes_max=settings.batch_bytes_max,
        clock_ms=lambda: 0,
        crash_points=CrashPoints(),
    )
    return landing, rebuilding_of(settings, serving, landing, clock_ms=lambda: 0, crash_points=CrashPoints())


def _records(spark: SparkSession, first: int, count: int, begin_ms: int) -> DataFrame:
    spread_ms = HOUR_MS // BATCHES
    records = inputs.view_records(spark, first, count, day=inputs.DAY, spread_ms=spread_ms, begin_ms=begin_ms).persist()
    records.count()
    return records


def _jobs(spark: SparkSession) -> int:
    """How many jobs Spark has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
