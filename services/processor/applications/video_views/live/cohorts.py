"""Cohorts: the views of a customer that have the same values of all live dimensions, counted together.

A view counts in one cohort, so its change costs one row, however many dimensions and pairs there are. Slices are added up from the
cohorts when a bucket is emitted (`slicing.py`).
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.live.rows import COHORTS, CohortRow
from services.processor.applications.video_views.live.slicing import FIELDS
from services.processor.engine.application.application import Context, RowMap
from shared.schemas.live import IDLE_MS, OTHER, PAIR_SEPARATOR, SLICE_VALUE_CHARS_MAX

#: Cohorts of one customer on one partition. Views beyond them count in a coarser one.
COHORTS_MAX: Final = 1_000
COARSER_MAX: Final = 100
#: Dimensions that are given up first for a coarser cohort: those with the most values.
_FINEST_FIRST: Final = (
    *("video_title", "video_id", "experiment", "player_version", "asn", "region", "video_series"),
    *("sub_property", "country", "browser", "os", "player_software", "player_name", "device", "connection", "cdn"),
)


#: Gauges come first.
_GAUGES: Final = 4
_COUNTS: Final = FIELDS[_GAUGES:]
_NEVER_MS: Final = 1 << 62
_NO_COUNTS: Final = (0,) * len(_COUNTS)


class Cohorts:
    """The cohorts of one partition. A cohort's name has its values in the order of the dimensions, empty where there is none."""

    def __init__(self, context: Context, dimensions: tuple[str, ...]) -> None:
        self._dimensions = dimensions
        self._rows: RowMap[CohortRow] = context.map(COHORTS)
        #: Names begin with it. Those of other dimensions, from before a change of settings, have another.
        self._prefix = f"{PAIR_SEPARATOR}{zlib.crc32(','.join(dimensions).encode()):08x}"
        by_fineness = [name for name in _FINEST_FIRST if name in dimensions]
        rest = [name for name in dimensions if name not in _FINEST_FIRST]
        self._given_up = [dimensions.index(name) for name in (*by_fineness, *rest)]

    def is_name(self, name: str) -> bool:
        """Whether this is the name of a cohort by the present dimensions."""
        return name.startswith(self._prefix)

    def values_of(self, name: str) -> list[str]:
        """The values of a cohort's name."""
        return name.split(PAIR_SEPARATOR)[2:]

    def name_of(self, owner: bytes, count: int, values: Mapping[str, Any]) -> str:
        """The cohort in which a view with these values counts: its own or, once there are `COHORTS_MAX`, a coarser one.

        Each step that makes it coarser has room for `COARSER_MAX` more; the last one is a single cohort.
        """
        own = [_text(values.get(name)) for name in self._dimensions]
        name, room = self._named(own), COHORTS_MAX
        for at in self._given_up:
            if count < room or self._rows.get(owner, name.encode()) is not None:
                break
            own[at] = OTHER
            name, room = self._named(own), room + COARSER_MAX
        return name

    def open(self, owner: bytes, name: str, bucket_ms: int, clock_ms: int) -> tuple[CohortRow, bool]:
        """The row of a cohort, to be counted into in this bucket, and whether it is new. It is stored with this checkpoint."""
        entry = name.encode()
        row = self._rows.get(owner, entry)
        is_new = row is None
        if row is None:
            row = CohortRow(bucket_ms, clock_ms)
        elif row.bucket_ms != bucket_ms:
            row.bucket_ms = bucket_ms
            for field in _COUNTS:
                setattr(row, field, 0)
        row.active_ms = clock_ms
        self._rows.put(owner, entry, row)
        return row, is_new

    def all_of(self, owner: bytes, count: int) -> list[tuple[bytes, CohortRow]]:
        """The names and rows of a customer's cohorts, which are `count`, as they are now."""
        return self._rows.items(owner, count)

    def figures_of(
        self, cohorts: Iterable[tuple[bytes, CohortRow]], bucket_ms: int
    ) -> Iterator[tuple[list[str] | None, tuple[int, ...]]]:
        """Each cohort's values (None: of other dimensions) and its figures in this bucket, as `FIELDS`."""
        for entry, row in cohorts:
            figures = msgspec.structs.astuple(row)[2:]
            if row.bucket_ms != bucket_ms:
                figures = figures[:_GAUGES] + _NO_COUNTS
            name = entry.decode()
            yield self.values_of(name) if self.is_name(name) else None, figures

    def forget_idle(self, owner: bytes, cohorts: Iterable[tuple[bytes, CohortRow]], clock_ms: int) -> int:
        """Deletes those of a customer's cohorts without viewers of which nothing was seen for long; how many these were."""
        idle = [entry for entry, row in cohorts if not row.viewers_now and clock_ms - row.active_ms > IDLE_MS]
        for entry in idle:
            self._rows.delete(owner, entry)
        return len(idle)

    def idle_from_ms(self, cohorts: Iterable[tuple[bytes, CohortRow]]) -> int:
        """The last time at which none of these cohorts is forgotten, if nothing is seen of them."""
        return min((row.active_ms + IDLE_MS for _, row in cohorts if not row.viewers_now), default=_NEVER_MS)

    def forget_all(self, owner: bytes, count: int) -> None:
        """Deletes all cohorts of a customer."""
        self._rows.clear(owner, count)

    def _named(self, values: list[str]) -> str:
        return PAIR_SEPARATOR.join((self._prefix, *values))


def _text(value: Any) -> str:
    """A value as a slice names it. Databases that keep slices take no text with a zero character."""
    if value in (None, ""):
        return ""
    return str(value)[:SLICE_VALUE_CHARS_MAX].replace(PAIR_SEPARATOR, " ").replace("\0", " ")
