"""How the live gauges of a partition are divided when some of its views move: each view's part, which stands in its own row, moves.

The counts of the open bucket stay, and are emitted once.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from services.processor.applications.video_views.live.gauges import OPEN_VIEWS, REBUFFERING
from services.processor.applications.video_views.live.rows import COHORTS, LIVE_ROWS, CohortRow, LiveRow
from services.processor.applications.video_views.view.state import Shown, ViewState
from services.processor.engine.application.growth import RowBytes, SumsDivided
from services.processor.engine.state.rows import pack, unpack
from services.processor.engine.state.store_spec import StoreSpec
from shared.schemas.live import BUCKET_MS

SUMS: Final = frozenset({LIVE_ROWS.id, COHORTS.id})
_GAUGES: Final = ("viewers_now", "rebuffering_now", "bitrate_bps_now", "bitrate_viewers_now")


def divide(views: StoreSpec[ViewState], sums: RowBytes, moved: Mapping[int, RowBytes]) -> SumsDivided:
    """The rows of the buckets and their cohorts, by where their views (rows of store `views`) are now."""
    stays: dict[bytes, bytes] = {}
    added: dict[int, dict[bytes, bytes]] = {}
    former = _Board(sums)
    tallies: dict[int, dict[str, int]] = {}
    for target, rows in moved.items():
        there = _Board({})
        is_open = 0
        for customer, shown in _shown(views, rows):
            is_open += shown.is_open
            _move(shown, customer, former, there)
        added[target] = there.encoded()
        tallies[target] = {OPEN_VIEWS: is_open}
    encoded = former.encoded()
    stays.update({key: row for key, row in encoded.items() if row != sums[key]})
    return SumsDivided(stays, added, tallies)


def _shown(views: StoreSpec[ViewState], rows: RowBytes) -> Iterator[tuple[bytes, Shown]]:
    """Customer of each view with what it counts as."""
    for key, row in rows.items():
        if key[0] != views.id:
            continue
        try:
            shown = views.decode(unpack(row)[2]).shown
        except msgspec.MsgspecError:
            # Its fold rejects such a row. What it counts for is not known.
            continue
        yield key[1:].partition(b":")[0], shown


def _move(shown: Shown, customer: bytes, former: "_Board", there: "_Board") -> None:
    if not (shown.is_open or shown.viewer or shown.bitrate_bps):
        return
    row = former.live.get(customer)
    if row is None:
        return
    new = there.customer(customer, row)
    row.open_now -= shown.is_open
    new.open_now += shown.is_open
    parts = (shown.viewer > 0, shown.viewer == REBUFFERING, shown.bitrate_bps, shown.bitrate_bps > 0)
    pairs: list[tuple[LiveRow | CohortRow, LiveRow | CohortRow]] = [(row, new)]
    for name in shown.slices:
        cohort = former.cohorts.get((customer, name.encode()))
        if cohort is not None:
            pairs.append((cohort, there.cohort(customer, name.encode(), cohort)))
    for before, after in pairs:
        for field, part in zip(_GAUGES, parts, strict=True):
            setattr(before, field, getattr(before, field) - part)
            setattr(after, field, getattr(after, field) + part)


class _Board:
    """The sums of one partition, decoded."""

    def __init__(self, sums: RowBytes) -> None:
        self.live: dict[bytes, LiveRow] = {}
        self.cohorts: dict[tuple[bytes, bytes], CohortRow] = {}
        self._deadlines: dict[bytes, int] = {}
        for key, row in sums.items():
            deadline_ms, _, payload = unpack(row)
            if key[0] == LIVE_ROWS.id:
                self.live[key[1:]] = LIVE_ROWS.decode(payload)
                self._deadlines[key[1:]] = deadline_ms
            else:
                owner = COHORTS.record_key_of(key[1:])
                name = key[len(COHORTS.row_key(owner, b"")) :]
                self.cohorts[owner, name] = COHORTS.decode(payload)

    def customer(self, customer: bytes, like: LiveRow) -> LiveRow:
        """The customer's row, with the bucket of another."""
        found = self.live.get(customer)
        if found is None:
            found = LiveRow(like.bucket_ms, like.active_ms, customer_id=like.customer_id)
            self.live[customer] = found
            self._deadlines[customer] = like.bucket_ms + BUCKET_MS
        return found

    def cohort(self, customer: bytes, name: bytes, like: CohortRow) -> CohortRow:
        """A cohort of a customer that has a row, with the bucket of another."""
        found = self.cohorts.get((customer, name))
        if found is None:
            found = self.cohorts[customer, name] = CohortRow(like.bucket_ms, like.active_ms)
            self.live[customer].cohorts += 1
        return found

    def encoded(self) -> dict[bytes, bytes]:
        """Its rows as they are stored."""
        rows = {
            _row_key(LIVE_ROWS, customer): pack(self._deadlines[customer], LIVE_ROWS.encode(row), LIVE_ROWS.format)
            for customer, row in self.live.items()
        }
        for (customer, name), cohort in self.cohorts.items():
            key = COHORTS.row_key(customer, name)
            rows[key] = pack(0, COHORTS.encode(cohort), COHORTS.format)
        return rows


def _row_key(spec: StoreSpec[LiveRow], key: bytes) -> bytes:
    return bytes([spec.id]) + key
