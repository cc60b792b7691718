"""The cost of landing: a merge and a rebuild in tables of different sizes, side by side, and the whole path of a batch."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from bench.finalizer import checks, inputs
from bench.finalizer.timing import ROUNDS, Took, best, cost_ratio, head, print_rounds, row, took
from bench.report.results import Part, against
from services.finalizer.driver import rebuilding_of
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import Rebuilt
from services.finalizer.settings import FinalizerSettings
from services.finalizer.streaming import rollups
from services.finalizer.streaming.landing import Landing
from services.finalizer.streaming.raw import RawLanding
from services.finalizer.streaming.rebuilding import Rebuilding
from services.finalizer.transforms.views import HOUR_MS, latest_per_view, may_be_stored, parse
from services.finalizer.warehouse import tables, views_table
from services.rim.process.crash_points import CrashPoints
from shared.topics import BEACONS

#: A batch into the larger table may cost so many times one into the smallest.
GROWTH_MAX: Final = 1.5
#: Views a second through the whole path that are the goal, on two quiet cores.
WHOLE_GOAL: Final = 10_000
#: The JVM compiles what it runs often: a service that has run for some minutes is what is measured.
_WARM_ROUNDS: Final = 3
#: What a batch is of: an hour, as while it keeps up, or a whole day, as when it catches up in a small installation.
_SPREADS_MS: Final = {"an hour": HOUR_MS, "a day": inputs.DAY_MS}


@dataclass
class Grown:
    """A table of so many views, and what was measured in it."""

    size: int
    place: str
    rounds: list[Took] = field(default_factory=list)


def fill(spark: SparkSession, settings: FinalizerSettings, sizes: Sequence[int]) -> list[Grown]:
    """A warehouse for each size, filled in one append."""
    found = []
    for size in sorted(sizes):
        one = Grown(size, f"{settings.warehouse_dir}-{size}")
        tables.ensure(spark, one.place, auto_compact=settings.auto_compact)
        cost = took(lambda: inputs.fill_views(spark, one.place, size))  # noqa: B023 - called at once
        print(f"table of {size:,} views filled in {cost.seconds:.0f} s", flush=True)
        found.append(one)
    return found


def merges(spark: SparkSession, grown: Sequence[Grown], batch: int) -> Part:
    """The same kind of batch merged into each table, in turn: half of its views are already there."""
    half = batch // 2
    for number in range(ROUNDS + 1):
        for one in grown:
            landed = _half_new(spark, one.size, batch, number).persist()
            days = sorted(found["day"] for found in landed.select("day").distinct().collect())
            cost = took(lambda: _merge(spark, one.place, landed, days))  # noqa: B023 - called at once
            landed.unpersist()
            one.rounds.append(cost)
    for one in grown:
        # The first pays for what is compiled once.
        del one.rounds[0]
        checks.merged(spark, one.place, one.size, again=half, new=(batch - half) * (ROUNDS + 1), revision=ROUNDS + 2)
        print_rounds(f"merge of {batch:,} views, half new, into {one.size:,}", one.rounds, batch, "views")
    return Part(
        name="finalizer-merges",
        title="Finalizer: a batch into a table that grows",
        command=f"python -m bench.finalizer --only merges --rows {_listed(grown)} --batch {batch}",
        checked="every view once, with its newest revision, read by another implementation than the one that wrote",
        compared=[
            against(
                f"merge of {batch:,} views into {one.size:,}, to {grown[0].size:,} (CPU)",
                cost_ratio(one.rounds, grown[0].rounds),
                GROWTH_MAX,
                at_most=True,
            )
            for one in grown[1:]
        ],
        lines=[
            (
                f"{batch:,} views, half of them revisions of views that stand in the table: finding the slices where the old"
                f" revisions count, then the merge. A day has {inputs.VIEWS_A_DAY:,} views in every table; in turn, best of"
                f" {ROUNDS} rounds. The batch's days are literals in the merge's condition, so no other day's file is read."
            ),
            "",
            *head("views"),
            *(row(f"into {one.size:,} views", one.rounds, batch) for one in grown),
        ],
    )


def _half_new(spark: SparkSession, size: int, batch: int, number: int) -> DataFrame:
    """Views of the table's last days: half of them are there already, the others are new there."""
    half = batch // 2
    again = inputs.view_records(spark, max(0, size - half), half, revision=2 + number)
    new = inputs.view_records(spark, 10**9 + number * batch, batch - half, like=size)
    return latest_per_view(parse(again.unionAll(new)))


def _merge(spark: SparkSession, place: str, landed: DataFrame, days: Sequence[int]) -> None:
    """As the service does it."""
    views_table.stored_slices(spark, place, landed.where(may_be_stored()), days)
    views_table.merge_views(spark, place, landed, days, revises=True, landed_at_ms=0)


def rebuilds(spark: SparkSession, settings: FinalizerSettings, grown: Sequence[Grown], slices: int) -> Part:
    """Slices of the newest day counted again in each table, in turn."""
    wanted = {one.size: inputs.slices_of(spark, one.place, slices) for one in grown}
    rounds: dict[int, list[Took]] = {one.size: [] for one in grown}
    rebuilt: dict[int, Rebuilt] = {}

    def rebuild(one: Grown) -> None:
        rebuilt[one.size] = rollups.rebuild(spark, one.place, wanted[one.size], settings.sets, version=time.time_ns())

    for _ in range(ROUNDS + 1):
        for one in grown:
            rounds[one.size].append(took(lambda: rebuild(one)))  # noqa: B023 - called at once
    for one in grown:
        checks.rebuilt(one.place, rebuilt[one.size])
        del rounds[one.size][0]
        count = len(wanted[one.size])
        print_rounds(f"rebuild of {count:,} slices, {one.size:,} views", rounds[one.size], count, "slices")
    smallest = rounds[grown[0].size]
    return Part(
        name="finalizer-rebuild",
        title="Finalizer: recount of slices",
        command=f"python -m bench.finalizer --only rebuild --rows {_listed(grown)} --slices {slices}",
        checked="views and watch time of the slices equal a recount of table views by another implementation",
        compared=[
            against(
                f"rebuild of {slices} slices in {one.size:,} views, to {grown[0].size:,} (CPU)",
                cost_ratio(rounds[one.size], smallest),
                GROWTH_MAX,
                at_most=True,
            )
            for one in grown[1:]
        ],
        lines=[
            f"{slices} slices (a customer's hour) of the newest day: minutes, hours, days, in total and by {settings.rollup_by}.",
            "",
            *head("slices"),
            *(row(f"in {one.size:,} views", rounds[one.size], slices) for one in grown),
        ],
    )


def large_hour(spark: SparkSession, settings: FinalizerSettings, views: int) -> Part:
    """All slices of one hour counted again, as each batch does while the hour grows."""
    place = f"{settings.warehouse_dir}-hour"
    tables.ensure(spark, place, auto_compact=settings.auto_compact)
    inputs.fill_views(spark, place, views, day=inputs.DAY, spread_ms=HOUR_MS)
    slices = inputs.slices_of(spark, place, inputs.CUSTOMERS)
    rebuilt: list[Rebuilt] = []
    rounds = [
        took(lambda: rebuilt.append(rollups.rebuild(spark, place, slices, settings.sets, version=time.time_ns())))
        for _ in range(_WARM_ROUNDS + ROUNDS)
    ][_WARM_ROUNDS:]
    checks.rebuilt(place, rebuilt[-1])
    print_rounds(f"rebuild of an hour of {views:,} views", rounds, views, "views")
    return Part(
        name="finalizer-hour",
        title="Finalizer: recount of a large hour",
        command=f"python -m bench.finalizer --only hour --hour {views}" + (" --codegen" if settings.codegen else ""),
        checked="views and watch time of the slices equal a recount of table views by another implementation",
        compared=[],
        lines=[
            (
                f"One hour of {inputs.CUSTOMERS} customers with {views:,} views: minutes, the hour, the day, in total and by"
                f" {settings.rollup_by}. A batch recounts each hour that it touches: this bounds how large an hour may be."
            ),
            "",
            *head("views"),
            row("of the hour", rounds, views),
        ],
    )


def whole_path(spark: SparkSession, settings: FinalizerSettings, views: int) -> Part:
    """Batches of new views through bronze, views, rollups and serving, each on a day of its own."""
    tables.ensure(spark, settings.warehouse_dir, auto_compact=settings.auto_compact)
    dsn = settings.postgres_dsn.get_secret_value()
    serving = Serving(dsn, away_seconds_max=20, stop=threading.Event())
    serving.open()
    landing = Landing(
        settings.warehouse_dir,
        serving,
        bytes_max=settings.batch_bytes_max,
        clock_ms=lambda: 0,
        crash_points=CrashPoints(),
    )
    rebuilding = rebuilding_of(settings, serving, landing, clock_ms=lambda: 0, crash_points=CrashPoints())
    raw = RawLanding(settings.warehouse_dir, BEACONS.name, "bench", clock_ms=lambda: 0, crash_points=CrashPoints())
    bronze: dict[str, list[Took]] = {spread: [] for spread in _SPREADS_MS}
    rest: dict[str, list[Took]] = {spread: [] for spread in _SPREADS_MS}
    number = 0
    for _ in range(_WARM_ROUNDS + ROUNDS):
        for spread, spread_ms in _SPREADS_MS.items():
            records = inputs.view_records(
                spark, number * views, views, day=inputs.DAY + number, spread_ms=spread_ms
            ).persist()
            records.count()
            bronze[spread].append(took(lambda: raw(inputs.as_beacons(records), number)))  # noqa: B023 - called at once
            rest[spread].append(took(lambda: _land(landing, rebuilding, records, number)))  # noqa: B023
            records.unpersist()
            number += 1
    serving.close()
    checks.whole(settings.warehouse_dir, dsn, views * number)
    whole = {
        spread: [
            Took(*map(sum, zip(*both, strict=True)))
            for both in zip(bronze[spread][_WARM_ROUNDS:], rest[spread][_WARM_ROUNDS:], strict=True)
        ]
        for spread in _SPREADS_MS
    }
    for spread, rounds in whole.items():
        print_rounds(f"append of {views:,} records to bronze", bronze[spread][_WARM_ROUNDS:], views, "records")
        print_rounds(f"whole path of {views:,} views of {spread}", rounds, views, "views")
    slices = {spread: inputs.CUSTOMERS * max(1, ms // HOUR_MS) for spread, ms in _SPREADS_MS.items()}
    return Part(
        name="finalizer-whole",
        title="Finalizer: the whole path of a batch",
        command=f"python -m bench.finalizer --only whole --whole {views}" + (" --codegen" if settings.codegen else ""),
        checked="every record and view once, rollups and the serving copy equal a recount by another implementation",
        compared=[
            against(
                f"whole path, views of {spread}, views a second, to {WHOLE_GOAL:,}",
                views / best(rounds).seconds / WHOLE_GOAL,
                1.0,
            )
            for spread, rounds in whole.items()
        ],
        lines=[
            (
                f"{views:,} new views of {inputs.CUSTOMERS} customers, which end within {_spreads(slices)}: bronze, views, rollups"
                f" by minute, hour and day, in total and by {settings.rollup_by}, and Postgres; best of {ROUNDS} rounds after"
                f" {_WARM_ROUNDS} others, in which the JVM compiles, in turn. Records come from memory, not from Kafka."
            ),
            "",
            *head("views"),
            *(
                line
                for spread, rounds in whole.items()
                for line in (
                    row(f"views of {spread}: bronze", bronze[spread][_WARM_ROUNDS:], views),
                    row(f"views of {spread}: all of it", rounds, views),
                )
            ),
        ],
    )


def _land(landing: Landing, rebuilding: Rebuilding, records: DataFrame, number: int) -> None:
    landing(records, number)
    rebuilding.rebuild_dirty(records.sparkSession, "bench")


def _spreads(slices: dict[str, int]) -> str:
    return " or ".join(f"{spread} ({count} slices)" for spread, count in slices.items())


def _listed(grown: Sequence[Grown]) -> str:
    return " ".join(str(one.size) for one in grown)
