"""Rollups put where the dashboard reads them, by the finalizer's own code."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing

from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import Group, Rebuilt, Slice

#: A database that a test has just made is there.
AWAY_SECONDS_MAX = 20.0

#: The sums of a slice, in the order of the serving table.
MEASURES = [
    "views",
    "started",
    "startup_failures",
    "playback_failures",
    "exits_before_start",
    "views_dropped",
    "watch_ms",
    "playing_ms",
    "rebuffer_count",
    "rebuffer_ms",
    "seek_count",
    "seek_ms",
    "bitrate_integral",
    "bitrate_time_ms",
    "beacons",
    "duplicates",
]


def publish(dsn: str, slices: Mapping[Slice, Mapping[str, int]]) -> None:
    """Publishes slices with these measures and no histograms; makes the tables when they are missing."""
    serving = Serving(dsn, away_seconds_max=AWAY_SECONDS_MAX, stop=threading.Event())
    with closing(serving):
        serving.open()
        names = list(next(iter(slices.values())))
        groups = [total(one, [figures[name] for name in names]) for one, figures in slices.items()]
        serving.publish(Rebuilt(list(slices), names, groups), checkpoint_id="test", batch_id=0)


def total(one: Slice, measures: Sequence[int], startups: Mapping[int, int] | None = None) -> Group:
    """The total of a slice; `startups` counts by bucket."""
    counts = startups or {}
    return Group(
        grain="hour",
        start_ms=one.hour * 3_600_000,
        customer_id=one.customer_id,
        dimensions="",
        members=[],
        measures=measures,
        uniques=b"",
        histograms=[list(counts), list(counts.values()), [], []],
    )
