"""Latencies of beacons and views, from the times that the system itself has stored. Pure; times in ms since 1970."""

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from deploy.demo.comparing.compare import Line, ViewKey, nearest_rank
from shared.schemas.live import BUCKET_MS

_EXPLANATION: Final = """\
Beacon to live number: from the append of a beacon, which its answer follows, to the append of the first live gauge that counts it.
Gauges are emitted every {bucket:g} s, so half of that is the least to expect.
Closed view to row: from the append of a view's last beacon to the append of its row in topic views, minus the grace
period of {grace:g} s.
It is measured over the {closed:,} views whose player closed them, because only there it is certain which grace period applied.
Closed view to page's figures: the same views, to the write of their hot row, a few ms before the commit that brings it to the page.
Row to page's figures: from the row's append to the same moment, over all rows, including those that waited for the tables.
Row to rollups: from the row's append to the publishing of the first round that counted it in the warehouse, over all rows,
including those that waited for Spark to start. published_at is read about once a second, so of two publishings within a second
only the later is seen."""


@dataclass(frozen=True)
class Landed:
    """One row of the warehouse."""

    customer_id: str
    view_id: str
    #: The append of the view's last beacon, and of the row's record in topic views.
    last_append_ms: int
    kafka_timestamp_ms: int
    #: The finalizer's clock just before the write that brought the row.
    landed_at_ms: int

    @property
    def key(self) -> ViewKey:
        """Whose row it is."""
        return (self.customer_id, self.view_id)


def published_after(row: Landed, published_ms: list[int]) -> int | None:
    """The first of these moments, in ascending order, by which the row was published; None without such a moment.

    A round counts all that was landed before it, and none runs beside a batch, so that is the first publishing after the write.
    """
    at = bisect_left(published_ms, row.landed_at_ms)
    return published_ms[at] if at < len(published_ms) else None


class LiveWaits:
    """How long beacons waited for the live gauge that counts them. Beacons and gauges may come in any order; 2 bytes a beacon."""

    def __init__(self) -> None:
        #: (partition, customer) -> bucket -> how far into it each beacon was appended, ms
        self._beacons: defaultdict[tuple[int, str], defaultdict[int, array[int]]] = defaultdict(
            lambda: defaultdict(lambda: array("H"))
        )
        #: (partition, customer) -> bucket -> the append of its gauge
        self._gauges: defaultdict[tuple[int, str], dict[int, int]] = defaultdict(dict)

    def beacon(self, partition: int, customer_id: str, append_ms: int) -> None:
        """A beacon was appended."""
        into_ms = append_ms % BUCKET_MS
        self._beacons[partition, customer_id][append_ms - into_ms].append(into_ms)

    def gauge(self, partition: int, customer_id: str, bucket_ms: int, append_ms: int) -> None:
        """The gauge of a bucket was appended."""
        self._gauges[partition, customer_id][bucket_ms] = append_ms

    def waits_ms(self) -> list[int]:
        """The waits of beacons, ms: of each that a gauge of its own bucket, or else of a later one, has counted."""
        found: list[int] = []
        for of, buckets in self._beacons.items():
            gauges = self._gauges.get(of, {})
            ascending = sorted(gauges)
            for bucket_ms, beacons in buckets.items():
                at = bisect_left(ascending, bucket_ms)
                if at < len(ascending):
                    gauge_ms = gauges[ascending[at]]
                    found += [gauge_ms - bucket_ms - into_ms for into_ms in beacons]
        return found


def latency_lines(
    rows: Iterable[Landed],
    published_ms: Collection[int],
    closed: Collection[ViewKey],
    grace_ms: int,
    live_ms: list[int],
    *,
    written_ms: Mapping[ViewKey, int],
) -> list[Line]:
    """The table's lines on latency. `closed` are the views that their player closed; the others wait longer.

    `live_ms`: how long each beacon waited for its live gauge. `written_ms`: when the hot row of each view was written.
    """
    ascending = sorted(published_ms)
    to_row, to_page, from_row_to_page, from_row_to_rollups = [], [], [], []
    for row in rows:
        page_ms, rollups_ms = written_ms.get(row.key), published_after(row, ascending)
        if row.key in closed:
            to_row.append(row.kafka_timestamp_ms - row.last_append_ms - grace_ms)
            if page_ms is not None:
                to_page.append(page_ms - row.last_append_ms - grace_ms)
        if page_ms is not None:
            from_row_to_page.append(page_ms - row.kafka_timestamp_ms)
        if rollups_ms is not None:
            from_row_to_rollups.append(rollups_ms - row.kafka_timestamp_ms)
    less = f"minus {grace_ms / 1_000:g} s, p50 / p99"
    return [
        _line("beacon to live number, p50 / p99", live_ms),
        _line(f"closed view to row, {less}", to_row),
        _line(f"closed view to page's figures, {less}", to_page),
        _line("row to page's figures, p50 / p99", from_row_to_page),
        _line("row to rollups, p50 / p99", from_row_to_rollups),
    ]


def explanation(closed: int, grace_ms: int) -> str:
    """What these lines measure."""
    return _EXPLANATION.format(bucket=BUCKET_MS / 1_000, grace=grace_ms / 1_000, closed=closed)


def _line(name: str, delays_ms: list[int]) -> Line:
    p50, p99 = nearest_rank(delays_ms, 0.5), nearest_rank(delays_ms, 0.99)
    if p50 is None or p99 is None:
        return Line(name, "", "", None)
    return Line(name, f"{p50 / 1_000:.2f} s / {p99 / 1_000:.2f} s", "", None)
