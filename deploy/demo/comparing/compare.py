"""Compares the players' truth with the system's figures: lines of a table. Pure.

Counts and sums must be equal; percentiles, which come from histograms, within 1 %; the fields of every row exactly.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loadtest.expected.truth import TIMES
from shared.statistics.histogram import quantile

#: Relative error that a percentile may have: half the ratio of a histogram bucket's bounds.
PERCENTILE_ERROR_MAX: Final = 0.01
DIFFERENCES_LISTED_MAX: Final = 10

#: Sums of a rollup that follow from the rows' fields: sum -> field.
_SUM_OF: Final = {
    "watch_ms": "watch_ms",
    "playing_ms": "playing_ms",
    "rebuffer_count": "rebuffer_count",
    "rebuffer_ms": "rebuffer_ms",
    "seek_count": "seek_count",
    "seek_ms": "seek_ms",
    "bitrate_integral": "bitrate_integral",
    "bitrate_time_ms": "bitrate_time_ms",
    "beacons": "beacon_count",
}
#: Counts of a rollup: how many rows have this field true.
_COUNT_OF: Final = {
    "startup_failures": "startup_failed",
    "playback_failures": "playback_failed",
    "exits_before_start": "ebvs",
    "views_dropped": "view_dropped",
}
SUMS: Final = ("views", "started", *_COUNT_OF, *_SUM_OF)
_SHOWN_SUMS: Final = ("views", "started", "playback_failures", "exits_before_start")
_OF_RATIOS: Final = ("rebuffer_ms", "watch_ms", "bitrate_integral", "bitrate_time_ms")

#: In the players' file beside the row's fields, but no field of it.
_NO_FIELDS: Final = frozenset(TIMES)

Row = Mapping[str, Any]
ViewKey = tuple[str, str]


@dataclass(frozen=True)
class Line:
    """One line of the table. `ok` is None if there is no figure to compare with, or too few views to judge it by."""

    name: str
    observed: str
    truth: str
    ok: bool | None

    @property
    def verdict(self) -> str:
        """What stands behind it; empty where there is nothing to compare."""
        if self.ok is None:
            return "too few" if self.observed and self.truth else ""
        return "ok" if self.ok else "DIFFERS"


@dataclass(frozen=True)
class Truth:
    """The players' account, as their file holds it."""

    done: bool = False
    totals: Mapping[str, int] = field(default_factory=dict)
    views: Sequence[Row] = ()
    #: When the players began, ms since 1970; 0: not known.
    began_ms: int = 0

    def total(self, name: str) -> int:
        """A total; 0 before the players have written any."""
        return self.totals.get(name, 0)


@dataclass(frozen=True)
class LiveTotals:
    """Topic `live` summed up over all its buckets; `open_now` from the newest of each partition and customer."""

    beacons: int = 0
    duplicates: int = 0
    dropped: int = 0
    late: int = 0
    views_started: int = 0
    views_finished: int = 0
    views_revised: int = 0
    open_now: int = 0


@dataclass(frozen=True)
class ViewRecords:
    """Topic `views`: its records, how many different (view, revision) they are, and how many revisions follow a first."""

    records: int = 0
    distinct: int = 0
    #: Summed over all views: the newest revision less one.
    again: int = 0


@dataclass(frozen=True)
class Rollup:
    """One customer in the serving database: sums over all hours, and how many start-ups fell into each bucket."""

    sums: Mapping[str, int]
    startup_buckets: Mapping[int, int]


@dataclass(frozen=True)
class Observed:
    """What the system reports at one moment. None: not known (yet)."""

    beacons_accepted: int | None = None
    #: A collector was restarted, which resets its counter: there is no sum to compare.
    collectors_restarted: bool = False
    beacons_in_kafka: int | None = None
    beacons_rejected: int | None = None
    live: LiveTotals = LiveTotals()
    views: ViewRecords = ViewRecords()
    warehouse_rows: int | None = None
    rollups: Mapping[str, Rollup] = field(default_factory=dict)


@dataclass(frozen=True)
class ViewsCompared:
    """Every row of the warehouse against its truth. `wrong` lists each field that differs."""

    missing: Sequence[str]
    unexpected: Sequence[str]
    wrong: Sequence[str]

    @property
    def ok(self) -> bool:
        """Whether every view has one row, exactly as it must be, and nothing else is there."""
        return not (self.missing or self.unexpected or self.wrong)

    @property
    def lines(self) -> list[Line]:
        """For the table."""
        return [
            _same(f"views {word}", len(found), 0)
            for word, found in (
                ("missing in the warehouse", self.missing),
                ("that nobody played", self.unexpected),
                ("with a wrong row", self.wrong),
            )
        ]

    @property
    def differences(self) -> list[str]:
        """The first differences, readable."""
        found = [f"missing: {view}" for view in self.missing] + [f"unexpected: {view}" for view in self.unexpected]
        return (found + list(self.wrong))[:DIFFERENCES_LISTED_MAX]


def total_lines(truth: Truth, observed: Observed) -> list[Line]:
    """The lines about all beacons and views together."""
    sent, acked, duplicates = (truth.total(name) for name in ("beacons_sent", "beacons_acked", "duplicates"))
    # A POST that was cut off may have been stored, and is then sent again: the number of duplicates is unknown.
    unknown = sent - acked
    live, views = observed.live, observed.views
    started = truth.total("views_started")
    return [
        Line("beacons sent by the players", _number(sent), "", None),
        Line("beacons answered 2xx", "", _number(acked), None)
        if observed.collectors_restarted
        else _same("beacons answered 2xx", observed.beacons_accepted, acked, slack=unknown),
        _same("beacons in Kafka", observed.beacons_in_kafka, acked, slack=unknown),
        _same("beacons rejected", observed.beacons_rejected, 0),
        _same("beacons folded", live.beacons, acked - duplicates),
        _same("duplicates dropped", live.duplicates, duplicates, slack=unknown),
        _same("beacons of no view dropped", live.dropped, truth.total("beacons_dropped"), slack=unknown),
        _same("beacons too late", live.late, 0),
        _same("views started", live.views_started, started),
        _same("views open", live.open_now, 0),
        _same("views finished", live.views_finished, started),
        # Players cannot know which view will finish again; but the gauges and the rows must agree on it.
        _same("views finished again (revisions)", live.views_revised, views.again),
        _same("records in topic views", views.records, started + live.views_revised),
        # The warehouse merges a copy away: only here is it seen.
        _same("doubled records in topic views", views.records - views.distinct, 0),
        _same("rows in the warehouse", observed.warehouse_rows, started),
    ]


def customer_lines(truth: Truth, observed: Observed) -> list[Line]:
    """The lines about each customer's quality, from the serving database."""
    customers = sorted({str(row["customer_id"]) for row in truth.views} | set(observed.rollups))
    lines: list[Line] = []
    for customer in customers:
        rows = [row for row in truth.views if row["customer_id"] == customer]
        lines += _lines_of(customer, rows, observed.rollups.get(customer))
    return lines


def compare_views(truth: Iterable[Row], warehouse: Iterable[Row]) -> ViewsCompared:
    """Compares every row field by field: all the fields that the truth names."""
    known = {_key(row): row for row in truth}
    found: dict[ViewKey, Row] = {}
    unexpected: list[str] = []
    for row in warehouse:
        key = _key(row)
        if key not in known or key in found:
            unexpected.append(_name(key) + (" (twice)" if key in found else ""))
        found[key] = row
    missing = [_name(key) for key in known if key not in found]
    wrong = [
        f"{_name(key)}: " + ", ".join(differing)
        for key, row in known.items()
        if key in found and (differing := _differing(row, found[key]))
    ]
    return ViewsCompared(missing, unexpected, wrong)


def nearest_rank(values: Sequence[float], q: float) -> float | None:
    """The exact `q` quantile (0..1) of the values; None without values."""
    if not values:
        return None
    return sorted(values)[max(1, math.ceil(q * len(values))) - 1]


def sums_of(rows: Sequence[Row]) -> dict[str, int]:
    """The rollup that these rows add up to."""
    sums = {"views": len(rows), "started": sum(map(_has_started, rows))}
    sums |= {name: sum(bool(row[field]) for row in rows) for name, field in _COUNT_OF.items()}
    return sums | {name: sum(row[field] for row in rows) for name, field in _SUM_OF.items()}


def _has_started(row: Row) -> bool:
    return row["startup_ms"] is not None or row.get("startup_unknown") not in (None, "not_started")


def _lines_of(customer: str, rows: Sequence[Row], rollup: Rollup | None) -> list[Line]:
    expected = sums_of(rows)
    sums = rollup.sums if rollup else {}
    startups = [row["startup_ms"] for row in rows if row["startup_ms"] is not None]
    buckets = rollup.startup_buckets if rollup else {}
    shown = [_same(f"{customer}: {name.replace('_', ' ')}", sums.get(name), expected[name]) for name in _SHOWN_SUMS]
    percentiles = [
        _near(f"{customer}: start-up {name}, ms", quantile(buckets, q), nearest_rank(startups, q))
        for name, q in (("median", 0.5), ("p95", 0.95))
    ]
    ratios = [
        # Equal when the sums are: a ratio could hide two errors.
        Line(
            f"{customer}: {name}",
            form(sums) if sums else "",
            form(expected),
            all(sums.get(part) == expected[part] for part in parts),
        )
        for name, form, parts in (
            ("rebuffering", _rebuffering, _OF_RATIOS[:2]),
            ("weighted bitrate", _bitrate, _OF_RATIOS[2:]),
        )
    ]
    others = [name for name in SUMS if name not in _SHOWN_SUMS + _OF_RATIOS]
    equal = [name for name in others if sums.get(name) == expected[name]]
    differing = ", ".join(name for name in others if name not in equal)
    all_equal = Line(
        f"{customer}: other sums equal",
        _number(len(equal)) + (f" (not {differing})" if differing and sums else ""),
        _number(len(others)),
        not differing,
    )
    return [*shown, *percentiles, *ratios, all_equal]


def _same(name: str, observed: int | None, truth: int, *, slack: int = 0) -> Line:
    ok = observed is not None and truth <= observed <= truth + slack
    return Line(name, "" if observed is None else _number(observed), _number(truth), ok)


def _near(name: str, observed: float | None, truth: float | None) -> Line:
    if observed is None or truth is None:
        return Line(name, _decimal(observed), _decimal(truth), observed is truth)
    return Line(name, _decimal(observed), _decimal(truth), abs(observed - truth) <= PERCENTILE_ERROR_MAX * abs(truth))


def _differing(truth: Row, row: Row) -> list[str]:
    return [
        f"{name} is {row.get(name)!r}, should be {value!r}"
        for name, value in truth.items()
        if name not in _NO_FIELDS and row.get(name) != value
    ]


def _key(row: Row) -> ViewKey:
    return str(row["customer_id"]), str(row["view_id"])


def _name(key: ViewKey) -> str:
    return ":".join(key)


def _rebuffering(sums: Mapping[str, int]) -> str:
    return f"{sums['rebuffer_ms'] / sums['watch_ms']:.3%}" if sums.get("watch_ms") else "no watch time"


def _bitrate(sums: Mapping[str, int]) -> str:
    if not sums.get("bitrate_time_ms"):
        return "none known"
    return f"{sums['bitrate_integral'] / sums['bitrate_time_ms'] / 1_000:,.1f} kbps"


def _number(value: int) -> str:
    return f"{value:,}"


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
