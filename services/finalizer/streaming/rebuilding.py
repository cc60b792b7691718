"""Rebuilds and publishes what batches have made dirty: some slices in a transaction, the newest hours first."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import structlog
from pyspark.sql import SparkSession

from services.finalizer.progress import PIECE_SECONDS_MAX, step
from services.finalizer.serving.customer_limits import CustomerLimits
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import Rebuilt, Slice
from services.finalizer.streaming import rollups
from services.finalizer.streaming.batches import timed
from services.finalizer.transforms.rollups import Sets
from services.finalizer.transforms.views import DAY_MS
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import counter
from shared.metrics import FINALIZER_SLICES

log = structlog.get_logger(__name__)

#: Dirty slices with fewer views are counted again whole: to read their other minutes costs more.
MINUTES_VIEWS_MIN: Final = 20_000
#: For so many days before today minutes are kept, however few `FINALIZER_MINUTES_DAYS` are.
_MINUTES_DAYS_MIN: Final = 1
#: The stream of what is counted again, in metrics.
_ROLLUPS: Final = "rollups"


class Rebuilding:
    """The work of a round. It depends on marks in Postgres alone: what a crash leaves is rebuilt by the next."""

    def __init__(
        self,
        location: str,
        serving: Serving,
        *,
        slices_max: int,
        sets: Sets,
        members_max: int,
        customer_limits: CustomerLimits,
        turn: AbstractContextManager[Any],
        clock_ms: Callable[[], int],
        crash_points: CrashPoints,
    ) -> None:
        """`turn` is that of batches (`Landing.turn`)."""
        self._location = location
        self._serving = serving
        #: Slices rebuilt and published at once. Where more are dirty, each transaction is whole for its slices.
        self._slices_max = slices_max
        #: Where there were too many groups, fewer.
        self._at_once: int | None = None
        self._sets = sets
        self._members_max = members_max
        self._customer_limits = customer_limits
        self._minutes_views_min = MINUTES_VIEWS_MIN
        self._turn = turn
        self._clock_ms = clock_ms
        self._crash_points = crash_points

    def rebuild_dirty(self, spark: SparkSession, why: str) -> int:
        """Rebuilds and publishes every dirty slice; returns how many."""
        count = 0
        while rebuilt := self.rebuild_some(spark, why):
            count += rebuilt
        return count

    def rebuild_some(self, spark: SparkSession, why: str) -> int:
        """Rebuilds and publishes dirty slices, the newest first, in one transaction; returns how many. `why` is noted with it."""
        step(PIECE_SECONDS_MAX)
        with self._turn:
            is_crowded = False
            while slices := self._serving.dirty(self._at_once or self._slices_max):
                minutes = {} if is_crowded else self._minutes_of(spark, slices)
                try:
                    rebuilt = self._rebuilt(spark, slices, minutes)
                except rollups.Crowded:
                    is_crowded = True
                    continue
                except rollups.TooManyGroups as too_many:
                    self._at_once = max(1, len(slices) // 2)
                    log.info("slices_fewer", groups=too_many.groups, slices=len(slices), at_once=self._at_once)
                    continue
                self._crash_points.reach("rebuilt")
                with timed("publish", _ROLLUPS):
                    self._serving.publish(rebuilt, checkpoint_id=why, batch_id=0)
                self._crash_points.reach("published")
                counter(FINALIZER_SLICES).inc(len(slices))
                return len(slices)
        self._at_once = None
        return 0

    def _minutes_of(self, spark: SparkSession, slices: Sequence[Slice]) -> dict[Slice, list[int]]:
        """The minutes of large slices that are counted again, where the others are still in table `rollups`."""
        names = ["+".join(names) for names in self._sets]
        found = self._serving.dirty_minutes(slices, names, views_min=self._minutes_views_min)
        # Of older hours minutes may be deleted, or were while fewer days of them were kept.
        first_hour = (self._clock_ms() // DAY_MS - _MINUTES_DAYS_MIN) * 24
        old = [one for one in found if one.hour < first_hour]
        gone = set(old) - rollups.with_minutes(spark, self._location, old) if old else set()
        return {one: minutes for one, minutes in found.items() if one not in gone}

    def _rebuilt(
        self, spark: SparkSession, slices: Sequence[Slice], minutes: Mapping[Slice, Collection[int]]
    ) -> Rebuilt:
        with timed("rebuild", _ROLLUPS):
            return rollups.rebuild(
                spark,
                self._location,
                slices,
                self._sets,
                version=self._serving.next_version(),
                members_max=self._members_max,
                own_members_max=self._customer_limits.members_max({one.customer_id for one in slices}),
                groups_max=rollups.GROUPS_MAX,
                minutes_of=minutes,
            )
