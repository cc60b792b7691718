"""What a warehouse and its serving copy must hold of views with a known truth, computed view by view, without Spark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.finalizer.finalizing import HOUR_MS, ROLLUP_BY, Installation, RawRecord

ROLLUPS = """
    SELECT extract(epoch FROM hour)::bigint / 3600, customer_id, views, started, startup_failures, playback_failures,
           exits_before_start, views_dropped, watch_ms, playing_ms, rebuffer_count, rebuffer_ms, seek_count, seek_ms,
           bitrate_integral::bigint, bitrate_time_ms, beacons, duplicates
    FROM serving.rollups_hourly ORDER BY 1, 2"""

RAW_TABLES = {"beacons": "bronze", "late": "late", "rejected": "rejected"}

#: The same, computed from the views by another engine.
RECOUNT = """
    SELECT hour, customer_id, count(*),
           count(*) FILTER (startup_ms IS NOT NULL OR coalesce(startup_unknown, 'not_started') <> 'not_started'),
           count(*) FILTER (startup_failed),
           count(*) FILTER (playback_failed), count(*) FILTER (ebvs), count(*) FILTER (view_dropped), sum(watch_ms)::bigint,
           sum(playing_ms)::bigint, sum(rebuffer_count)::bigint, sum(rebuffer_ms)::bigint, sum(seek_count)::bigint,
           sum(seek_ms)::bigint, sum(bitrate_integral)::bigint, sum(bitrate_time_ms)::bigint, sum(beacon_count)::bigint,
           sum(duplicate_count)::bigint
    FROM t WHERE NOT deleted GROUP BY 1, 2 ORDER BY 1, 2"""

BUCKETS = """
    SELECT extract(epoch FROM hour)::bigint / 3600, customer_id, metric, bucket, count
    FROM serving.histograms_hourly"""


def expect_truth(installation: Installation, truth: list[View]) -> None:
    """Asserts that views, rollups, histograms and the serving copy are exactly those of `truth`."""
    stored = installation.table(
        "views", "SELECT customer_id, view_id, revision, hour, watch_ms, startup_ms, deleted FROM t ORDER BY 1, 2"
    )
    assert stored == [
        (view.customer_id, view.view_id, view.revision, hour_of(view), view.watch_ms, view.startup_ms, view.deleted)
        for view in truth
    ]
    assert installation.serving(ROLLUPS) == installation.table("views", RECOUNT)
    assert buckets_served(installation) == buckets_of(truth)
    assert groups_stored(installation) == groups_of(truth)
    assert groups_served(installation) == {
        key: totals for key, totals in groups_of(truth).items() if key[0] != "minute"
    }
    assert installation.serving("SELECT customer_id, view_id, revision, deleted FROM serving.views ORDER BY 1, 2") == [
        (view.customer_id, view.view_id, view.revision, view.deleted) for view in truth
    ]
    assert installation.serving("SELECT * FROM finalizer.dirty_slices") == []
    # The sums of hot rows say what the rollups say, so every slice belongs to the rollups again.
    assert installation.serving(_DIFFERING) == []
    assert installation.serving("SELECT * FROM serving.hot_slices") == []
    # Every level of the blocks of hours holds every view once.
    views: Counter[str] = Counter()
    watch_ms: Counter[str] = Counter()
    for view in truth:
        if not view.deleted:
            views[view.customer_id] += 1
            watch_ms[view.customer_id] += view.watch_ms
    assert installation.serving(BLOCKS) == [
        (level, customer, views[customer], watch_ms[customer]) for level in range(14) for customer in sorted(views)
    ]


_DIFFERING = """
    SELECT serving.differing(array_agg(hour), array_agg(customer_id)) FROM (
        SELECT start AS hour, customer_id FROM serving.sums WHERE grain = 'hour'
        UNION SELECT extract(epoch FROM hour)::bigint / 3600, customer_id FROM serving.rollups_hourly
    ) AS slices"""
BLOCKS = """
    SELECT level, customer_id, sum(views)::bigint, sum(watch_ms)::bigint FROM serving.blocks
    GROUP BY level, customer_id ORDER BY level, customer_id COLLATE "C" """

Groups = Mapping[tuple[Any, ...], tuple[int, int, tuple[tuple[int, int], ...]]]

_WIDTHS_MS = {"minute": 60_000, "hour": HOUR_MS, "day": 24 * HOUR_MS}


def groups_of(truth: list[View]) -> Groups:
    """(grain, start, customer, dimensions, members) -> views, watch time, startup histogram: computed view by view."""
    views: Counter[tuple[Any, ...]] = Counter()
    watch_ms: Counter[tuple[Any, ...]] = Counter()
    startups: dict[tuple[Any, ...], Counter[int]] = {}
    sets = [(), *(tuple(one.split("+")) for one in ROLLUP_BY.split(","))]
    for view in truth:
        if view.deleted:
            continue
        for grain, width_ms in _WIDTHS_MS.items():
            start_ms = ended_ms(view) // width_ms * width_ms
            for names in sets:
                members = tuple(getattr(view, name) for name in names)
                key = (grain, start_ms, view.customer_id, "+".join(names), members)
                views[key] += 1
                watch_ms[key] += view.watch_ms
                counts = startups.setdefault(key, Counter())
                if view.startup_ms is not None:
                    counts[bucket_of(view.startup_ms)] += 1
    return {key: (count, watch_ms[key], tuple(sorted(startups[key].items()))) for key, count in views.items()}


def groups_stored(installation: Installation) -> Groups:
    """The same, from table `rollups`."""
    rows = installation.table(
        "rollups",
        "SELECT grain, start_ms, customer_id, dimensions, members, views, watch_ms::bigint,"
        " map_entries(startup_ms_histogram) FROM t",
    )
    found = {}
    for *key, members, views, watch_ms, histogram in rows:
        counts = tuple(sorted((entry["key"], entry["value"]) for entry in histogram))
        assert (*key, tuple(members)) not in found, "a group stands twice"
        found[*key, tuple(members)] = (views, watch_ms, counts)
    return found


def groups_served(installation: Installation) -> Groups:
    """The same, from the serving database."""
    rows = installation.serving(
        "SELECT grain, extract(epoch FROM start)::bigint * 1000, customer_id, dimensions, members, views, watch_ms::bigint,"
        " startup_ms_buckets, startup_ms_counts FROM serving.rollups"
    )
    return {
        (*key, tuple(members)): (views, watch_ms, tuple(zip(buckets, counts, strict=True)))
        for *key, members, views, watch_ms, buckets, counts in rows
    }


def expect_raw(installation: Installation, sent: Iterable[RawRecord]) -> None:
    """Asserts that the raw tables hold exactly these records, each once."""
    wanted: dict[str, list[tuple[int, bytes, bytes]]] = {table: [] for table in RAW_TABLES.values()}
    for one in sent:
        wanted[RAW_TABLES[one.topic]].append((one.partition, one.key, one.value))
    for table, records in wanted.items():
        found = installation.table(table, "SELECT kafka_partition, key, value, kafka_offset FROM t")
        assert sorted(row[:3] for row in found) == sorted(records), table
        assert len({(row[0], row[3]) for row in found}) == len(found), table


def ended_ms(view: View) -> int:
    """When a view counts, computed here: at its end, no earlier than a day before its beacons nor later than an hour after."""
    earliest, latest = view.first_append_ms - 24 * HOUR_MS, view.last_append_ms + HOUR_MS
    return min(max(view.view_end_ms, earliest), latest)


def hour_of(view: View) -> int:
    """The rollup hour of a view."""
    return ended_ms(view) // HOUR_MS


def buckets_of(truth: list[View]) -> Mapping[tuple[Any, ...], int]:
    """(hour, customer, metric, bucket) -> how many views."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for view in truth:
        if view.deleted:
            continue
        place = (hour_of(view), view.customer_id)
        if view.startup_ms is not None:
            counts[*place, "startup_ms", bucket_of(view.startup_ms)] += 1
        counts[*place, "rebuffer_ms", bucket_of(view.rebuffer_ms)] += 1
    return counts


def buckets_served(installation: Installation) -> Mapping[tuple[Any, ...], int]:
    """The same, as the dashboard reads it."""
    return {tuple(row[:4]): row[4] for row in installation.serving(BUCKETS)}
