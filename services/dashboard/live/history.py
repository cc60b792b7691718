"""Turns live records into the page's picture: sums over partitions, bucket by bucket, for the last minutes. Pure; bounded.

Each partition counts on its own clock, so the records of one bucket arrive at different times. A bucket is shown when every
recently active partition has reached it, or `settle_ms` after its first record. In the second case a partition is behind or gone,
and the picture must not stop for it. Later records still correct a bucket that is already shown.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from services.dashboard.live.largest import LargestCustomers
from shared.schemas.live import BUCKET_MS, IDLE_MS, Live

#: As at the bucket's end. If a partition has no record of a bucket, its last gauges count for this long: views do not end because
#: their partition moves to another slot.
GAUGES: Final = ("viewers_now", "rebuffering_now", "open_now", "bitrate_bps_now", "bitrate_viewers_now")
CARRY_MS: Final = 30_000
#: How long slices are kept: they are many, and only the newest are shown.
SLICES_MS: Final = 2 * 60_000
#: What happened in the bucket; never carried.
COUNTS: Final = (
    "beacons",
    "duplicates",
    "dropped",
    "late",
    "views_started",
    "views_finished",
    "playback_failures",
    "startup_failures",
    "exits_before_start",
    "startups",
    "startup_ms",
    "failures",
)
#: What is given bucket by bucket.
SERIES: Final = (
    "viewers_now",
    "rebuffering_now",
    "bitrate_bps_now",
    "bitrate_viewers_now",
    "beacons",
    "views_started",
    "views_finished",
    "playback_failures",
    "startup_failures",
    "exits_before_start",
    "startups",
    "startup_ms",
    "failures",
)
#: A partition that has sent nothing for this long, in bucket time, is not waited for.
ACTIVE_MS: Final = 60_000
#: The name of the sum over all customers; no customer id can be this.
ALL: Final = "*"
#: The name under which customers without room of their own are added up; no customer id can be this either.
_OMITTED: Final = "+"
Figures = dict[str, int]
#: Whether a customer is one of those that somebody may see; None: all are, also those that are not shown apart.
Has = Callable[[str], bool] | None


class LiveHistory:
    """The buckets of the last `history_ms`. Times called `now_ms` may be of any clock that does not go back."""

    def __init__(self, *, history_ms: int, settle_ms: int, customers_max: int) -> None:
        self._history_ms = history_ms
        self._settle_ms = settle_ms
        self._largest = LargestCustomers(customers_max)
        #: bucket → customer → partition → record
        self._buckets: dict[int, dict[str, dict[int, Live]]] = {}
        self._first_came_ms: dict[int, int] = {}
        #: Buckets whose records have their slices still.
        self._sliced: set[int] = set()
        #: partition → its newest bucket, and the newest in which it had anything to count
        self._newest: dict[int, int] = {}
        self._busy: dict[int, int] = {}
        #: What `_series` found, and the version that it is of.
        self._drawn: tuple[int, list[int], dict[str, list[Figures | None]]] = (-1, [], {})
        #: Changes whenever the picture does.
        self.version = 0
        #: Start of the newest bucket that is shown; None before the first.
        self.shown_ms: int | None = None

    def take_record(self, live: Live, now_ms: int) -> None:
        """One record arrived at `now_ms`. The same record again replaces itself, unless its customer is omitted."""
        bucket_ms = live.bucket_ms
        newest_ms = max(self._newest.values(), default=bucket_ms)
        if bucket_ms <= newest_ms - self._history_ms - CARRY_MS:
            return
        self._newest[live.partition] = max(self._newest.get(live.partition, 0), bucket_ms)
        if any(getattr(live, name) for name in (*GAUGES, *COUNTS)):
            self._busy[live.partition] = max(self._busy.get(live.partition, 0), bucket_ms)
        customers = self._buckets.setdefault(bucket_ms, {})
        if bucket_ms <= newest_ms - SLICES_MS:
            live = _unsliced(live)
        self._sliced.add(bucket_ms)
        if not self._largest.count(live):
            live = _added(customers.get(_OMITTED, {}).get(live.partition), live)
        customers.setdefault(live.customer_id, {})[live.partition] = live
        self._first_came_ms.setdefault(bucket_ms, now_ms)
        if self.shown_ms is not None and bucket_ms <= self.shown_ms:
            self.version += 1
        if bucket_ms > newest_ms:
            self._trim(bucket_ms)

    def settle(self, now_ms: int) -> None:
        """Shows what may be shown by now."""
        waiting = sorted(bucket_ms for bucket_ms in self._buckets if self.shown_ms is None or bucket_ms > self.shown_ms)
        for bucket_ms in waiting:
            has_waited = now_ms - self._first_came_ms[bucket_ms] >= self._settle_ms
            if not has_waited and not self._is_complete(bucket_ms):
                break
            self.shown_ms = bucket_ms
            self.version += 1

    def picture(self, has: Has = None) -> dict[str, Any]:
        """What is shown: per customer (and `*`, all of them) its series, oldest bucket first, and its newest figures.

        A bucket of which nothing is known is None. `totals` sums the counts over the series. Where there are more customers
        than `customers_max`, those with the most viewers are shown apart; the others count in `*` alone. Who may see some
        customers (`has`) is shown those, and `*` is the sum of those that are shown.
        """
        shown, series = self._series()
        if has is not None:
            series = {
                customer_id: sums for customer_id, sums in series.items() if customer_id != ALL and has(customer_id)
            }
            series[ALL] = self._together(shown, list(series.values()))
        return {
            "bucket_ms": BUCKET_MS,
            "shown_until_ms": None if self.shown_ms is None else self.shown_ms + BUCKET_MS,
            "from_ms": shown[0] if shown else None,
            "partitions": {
                "heard": len(self._newest),
                "behind": [
                    {"partition": partition, "until_ms": self._newest[partition] + BUCKET_MS}
                    for partition in self._behind()
                ],
            },
            "customers_omitted": self._largest.omitted(has),
            "omitted_in_all": has is None,
            "customers": {customer_id: _summary(sums) for customer_id, sums in sorted(series.items())},
        }

    def _series(self) -> tuple[list[int], dict[str, list[Figures | None]]]:
        """The buckets shown, and the figures of each customer that is shown apart, and of `*`."""
        if self._drawn[0] != self.version:
            shown = list(self._shown_buckets())
            series: dict[str, list[Figures | None]] = {ALL: [None] * len(shown)}
            for at, figures in enumerate(self._sums(shown)):
                figures.pop(_OMITTED, None)
                for customer_id, sums in figures.items():
                    if customer_id != ALL and customer_id not in self._largest.members:
                        continue
                    series.setdefault(customer_id, [None] * len(shown))[at] = sums
            self._drawn = self.version, shown, series
        return self._drawn[1:]

    def _together(self, shown: list[int], series: list[list[Figures | None]]) -> list[Figures | None]:
        """The sum of these customers, bucket by bucket: 0 where none of them was counted, None where nobody was."""
        sums: list[Figures | None] = []
        for at, bucket_ms in enumerate(shown):
            known = [figures for one in series if (figures := one[at]) is not None]
            total = {name: sum(figures[name] for figures in known) for name in (*GAUGES, *COUNTS)}
            sums.append(total if known or bucket_ms in self._buckets else None)
        return sums

    def recent(self, customer_id: str, buckets_max: int, has: Has = None) -> list[list[Live]]:
        """The records of a customer (of `*`: of all that `has`) in the newest buckets shown, by bucket, the newest last."""
        found = []
        for bucket_ms in list(self._shown_buckets())[-buckets_max:]:
            customers = self._buckets.get(bucket_ms, {})
            of_all = [partitions for one, partitions in customers.items() if has is None or has(one)]
            by_customer = of_all if customer_id == ALL else [customers.get(customer_id, {})]
            found.append([live for partitions in by_customer for live in partitions.values()])
        return found

    def customers(self, has: Has = None) -> int:
        """How many customers are shown apart."""
        return sum(1 for one in self._largest.members if has is None or has(one))

    def _behind(self) -> list[int]:
        """Partitions that the newest bucket shown is without, though they had not fallen idle: their views are not in it."""
        if self.shown_ms is None:
            return []
        return sorted(
            partition
            for partition, busy_ms in self._busy.items()
            if self._newest[partition] < self.shown_ms and self._newest[partition] < busy_ms + IDLE_MS - BUCKET_MS
        )

    def _is_complete(self, bucket_ms: int) -> bool:
        newest_ms = max(self._newest.values())
        active = [reached_ms for reached_ms in self._newest.values() if reached_ms > newest_ms - ACTIVE_MS]
        return all(reached_ms >= bucket_ms for reached_ms in active)

    def _trim(self, newest_ms: int) -> None:
        for bucket_ms in [known for known in self._sliced if known <= newest_ms - SLICES_MS]:
            self._sliced.remove(bucket_ms)
            for partitions in self._buckets.get(bucket_ms, {}).values():
                partitions.update({partition: _unsliced(live) for partition, live in partitions.items()})
        oldest_ms = newest_ms - self._history_ms - CARRY_MS
        for bucket_ms in [known for known in self._buckets if known <= oldest_ms]:
            del self._buckets[bucket_ms], self._first_came_ms[bucket_ms]
        self._largest.forget_before(oldest_ms)

    def _shown_buckets(self) -> Iterator[int]:
        if self.shown_ms is None:
            return
        oldest_ms = max(min(self._buckets), self.shown_ms - self._history_ms + BUCKET_MS)
        yield from range(oldest_ms, self.shown_ms + BUCKET_MS, BUCKET_MS)

    def _sums(self, shown: list[int]) -> Iterator[dict[str, Figures]]:
        """For each bucket shown, the figures of every customer something is known of, and of all together."""
        known: dict[tuple[str, int], Live] = {}
        if shown:
            earlier = sorted(bucket_ms for bucket_ms in self._buckets if bucket_ms < shown[0])
            for bucket_ms in earlier:
                self._remember(bucket_ms, known)
        for bucket_ms in shown:
            self._remember(bucket_ms, known)
            figures: dict[str, Figures] = defaultdict(lambda: dict.fromkeys((*GAUGES, *COUNTS), 0))
            spoke = {partition for partitions in self._buckets.get(bucket_ms, {}).values() for partition in partitions}
            # A bucket without any record is unknown, not carried over: no processor is counting.
            for (customer_id, _), live in known.items() if bucket_ms in self._buckets else ():
                is_of_bucket = live.bucket_ms == bucket_ms
                moved = customer_id == _OMITTED or not self._largest.is_member(customer_id, bucket_ms)
                if moved and not is_of_bucket and live.partition in spoke:
                    # The partition counts them elsewhere in this bucket: under their own name, or among the omitted.
                    continue
                if is_of_bucket or live.bucket_ms > bucket_ms - CARRY_MS:
                    for name in (*GAUGES, *COUNTS) if is_of_bucket else GAUGES:
                        value: int = getattr(live, name)
                        figures[customer_id][name] += value
                        figures[ALL][name] += value
            yield figures

    def _remember(self, bucket_ms: int, known: dict[tuple[str, int], Live]) -> None:
        for customer_id, partitions in self._buckets.get(bucket_ms, {}).items():
            for partition, live in partitions.items():
                known[customer_id, partition] = live


def _added(others: Live | None, live: Live) -> Live:
    """The record of all omitted customers, with one more."""
    figures = {name: getattr(live, name) + (getattr(others, name) if others else 0) for name in (*GAUGES, *COUNTS)}
    return msgspec.structs.replace(live, customer_id=_OMITTED, slices={}, **figures)


def _unsliced(live: Live) -> Live:
    return msgspec.structs.replace(live, slices={}) if live.slices else live


def _summary(series: list[Figures | None]) -> dict[str, Any]:
    """A customer's series by field, with its newest figures and the sums of its counts."""
    newest = series[-1] if series else None
    return {
        "now": newest,
        "totals": {name: sum(sums[name] for sums in series if sums) for name in COUNTS},
        "series": {name: [None if sums is None else sums[name] for sums in series] for name in SERIES},
    }
