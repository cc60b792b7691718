"""The dashboard's queries on a real Postgres with the finalizer's own tables."""

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import msgspec
import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.quality.queries import CUSTOMERS_MAX, PostgresServing, Rollups
from services.finalizer.serving.database import Serving
from services.finalizer.serving.migrate import migrate
from services.finalizer.serving.published import Group, Rebuilt, Slice
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from shared.measures import SUMMED
from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.finalizing import hour_of
from tests.integration.hot import generated, write
from tests.integration.served import MEASURES, publish, total

pytestmark = pytest.mark.integration

EVER = datetime.fromtimestamp(0, UTC)


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(f"dashboard_{uuid4().hex}")


@pytest.fixture
async def serving(dsn: str) -> AsyncIterator[PostgresServing]:
    opened = PostgresServing(dsn, connections_max=1, seconds_max=20.0)
    await opened.open()
    yield opened
    await opened.close()


async def test_sums_that_64_bits_do_not_hold_are_returned(serving: PostgresServing, dsn: str) -> None:
    vast = dict.fromkeys(MEASURES, 1) | {
        "watch_ms": 10**30,
        "playing_ms": 9 * 10**28,
        "rebuffer_ms": 10**28,
        "bitrate_time_ms": 10**25,
    }
    publish(dsn, {Slice(hour, "acme"): vast for hour in range(3)} | {Slice(0, "other"): vast})

    found = await serving.rollups_since(EVER, EVERYTHING)

    assert found.published_at is not None
    assert [(one.customer_id, one.views) for one in found.sums] == [("acme", 3), ("other", 1)]
    assert found.sums[0].rebuffer_ms / found.sums[0].watch_ms == pytest.approx(0.01)
    assert found.sums[0].rebuffer_ms / found.sums[0].playing_ms == pytest.approx(1 / 9)


def publish_sources(dsn: str, *rows: tuple[str, int, str, list[int]]) -> None:
    """Rollups of customer acme by client: grain, hour, client, and buckets, of which each counts its own number."""
    with psycopg.connect(dsn) as connection:
        for grain, hour, source, buckets in rows:
            connection.execute(
                f"INSERT INTO serving.rollups (grain, start, customer_id, dimensions, members, {', '.join(MEASURES)}, uniques,"
                " startup_ms_buckets, startup_ms_counts, rebuffer_ms_buckets, rebuffer_ms_counts)"
                f" VALUES (%s, to_timestamp(%s), 'acme', 'source', ARRAY[%s], {', '.join('1' for _ in MEASURES)}, '',"
                " %s::int[], %s::bigint[], '{}', '{}')",
                (grain, hour * 3_600, source, buckets, buckets),
            )


async def test_a_startup_median_of_several_clients_is_split_by_client(serving: PostgresServing, dsn: str) -> None:
    publish(dsn, {Slice(hour, "acme"): dict.fromkeys(MEASURES, 1) for hour in (26, 30)})
    publish_sources(dsn, *(("day", day * 24, source, [5]) for day in (0, 1) for source in ("cmcd", "mux")))
    publish_sources(dsn, ("hour", 26, "mux", [4]), ("hour", 30, "mux", [4, 6]), ("hour", 30, "cmcd", [7]))

    def split(found: Rollups) -> dict[str, tuple[int, dict[int, int]]]:
        return {source: (sums.views, counts) for source, (sums, counts) in found.by_source["acme"].items()}

    # Of these hours, or where they are many, of the days that they lie in.
    assert split(await serving.rollups_since(datetime.fromtimestamp(25 * 3_600, UTC), EVERYTHING)) == {
        "cmcd": (1, {7: 7}),
        "mux": (2, {4: 8, 6: 6}),
    }
    publish(dsn, {Slice(200, "acme"): dict.fromkeys(MEASURES, 1)})
    assert split(await serving.rollups_since(EVER, EVERYTHING)) == {"cmcd": (2, {5: 10}), "mux": (2, {5: 10})}


async def test_the_page_counts_each_view_once_whether_the_warehouse_has_counted_it_or_not(
    serving: PostgresServing, dsn: str
) -> None:
    chance = random.Random(5)
    views = [
        generated(chance, f"view-{number}", customer="acme", source=chance.choice(["mux", "cmcd"]))
        for number in range(60)
    ]
    # The warehouse has all but the last views, and older revisions of some; a view has moved to another hour since.
    older = [generated(chance, view.view_id, source=view.source, customer="acme") for view in views[:40]]
    views = [msgspec.structs.replace(view, revision=2) for view in views]
    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as finalizer:
        finalizer.open()
        finalizer.keep_views(0)
        groups = [group for view in older if not view.deleted for group in _rollups_of(view)]
        merged = _added(groups)
        slices = list({Slice(group.start_ms // 3_600_000, group.customer_id) for group in merged})
        finalizer.publish(Rebuilt(slices, MEASURES, merged), checkpoint_id="c", batch_id=1)
        with psycopg.connect(dsn, autocommit=True) as connection:
            write(connection, older)
            write(connection, views)
            before = await serving.rollups_since(EVER, EVERYTHING)
            # Until all rows are there, the rollups alone are read.
            connection.execute("SELECT serving.settle(array_agg(hour), array_agg(customer_id)) FROM serving.hot_slices")
            connection.execute("UPDATE serving.coverage SET is_whole = true")
    assert [one.views for one in before.sums] == [sum(not view.deleted for view in older)]

    truth = [view for view in views if not view.deleted]
    for since_hour in (0, sorted(map(hour_of, truth))[len(truth) // 2]):
        since = datetime.fromtimestamp(since_hour * 3_600, UTC)
        wanted = [view for view in truth if hour_of(view) >= since_hour]
        found = await serving.rollups_since(since, EVERYTHING)
        assert [(one.views, one.watch_ms, one.started) for one in found.sums] == [
            (len(wanted), float(sum(view.watch_ms for view in wanted)), sum(map(_has_started, wanted)))
        ]
        assert found.startups["acme"] == Counter(
            bucket_of(one.startup_ms) for one in wanted if one.startup_ms is not None
        )
        assert found.newest_hour is not None
        if since_hour == 0:
            assert {source: sums.views for source, (sums, _) in found.by_source["acme"].items()} == Counter(
                view.source for view in wanted
            )


def _has_started(view: View) -> bool:
    return view.startup_ms is not None or (view.startup_unknown or "not_started") != "not_started"


def _rollups_of(view: View) -> Iterator[Group]:
    """One view as the finalizer counts it: by hour and day, in total and by client."""
    figures = [
        *(1, _has_started(view), view.startup_failed, view.playback_failed, view.ebvs, view.view_dropped),
        *(getattr(view, field) for field in SUMMED.values()),
    ]
    for grain, width_ms in (("hour", 3_600_000), ("day", 86_400_000)):
        start_ms = hour_of(view) * 3_600_000 // width_ms * width_ms
        for dimensions, members in (("", []), ("source", [view.source])):
            startups = [] if view.startup_ms is None else [bucket_of(view.startup_ms)]
            histograms = [startups, [1] * len(startups), [bucket_of(view.rebuffer_ms)], [1]]
            yield Group(
                grain, start_ms, view.customer_id, dimensions, members, list(map(int, figures)), b"", histograms
            )


def _added(groups: list[Group]) -> list[Group]:
    """Groups of one place as one."""
    found: dict[tuple[object, ...], Group] = {}
    for one in groups:
        key = (one.grain, one.start_ms, one.dimensions, tuple(one.members))
        known = found.get(key)
        if known is None:
            found[key] = one
            continue
        histograms: list[list[int]] = []
        for at in (0, 2):
            counts = Counter(dict(zip(known.histograms[at], known.histograms[at + 1], strict=True)))
            counts.update(dict(zip(one.histograms[at], one.histograms[at + 1], strict=True)))
            histograms += [sorted(counts), [counts[bucket] for bucket in sorted(counts)]]
        measures = [mine + its for mine, its in zip(known.measures, one.measures, strict=True)]
        found[key] = replace(known, measures=measures, histograms=histograms)
    return list(found.values())


async def test_the_clients_in_a_startup_median_are_named(serving: PostgresServing, dsn: str) -> None:
    publish(dsn, {Slice(30, "acme"): dict.fromkeys(MEASURES, 1), Slice(30, "other"): dict.fromkeys(MEASURES, 1)})
    publish_sources(
        dsn, ("day", 0, "epas", [5]), ("day", 24, "cmcd", [5]), ("day", 24, "mux", [5]), ("day", 24, "native", [])
    )
    publish_sources(dsn, ("hour", 26, "mux", [5]), ("hour", 30, "cmcd", [5]), ("hour", 30, "native", []))
    # Of few hours: what these have, and not the rest of their day. A client without start-up times is in no median.
    assert (await serving.rollups_since(datetime.fromtimestamp(25 * 3_600, UTC), EVERYTHING)).sources == {
        "acme": ["cmcd", "mux"]
    }
    found = await serving.rollups_since(datetime.fromtimestamp(30 * 3_600, UTC), EVERYTHING)
    assert (found.sources, found.by_source) == ({"acme": ["cmcd"]}, {})
    # Of many hours: what their days have.
    publish(dsn, {Slice(200, "acme"): dict.fromkeys(MEASURES, 1)})
    found = await serving.rollups_since(EVER, EVERYTHING)
    assert found.sources == {"acme": ["cmcd", "epas", "mux"]}
    assert set(found.by_source["acme"]) == {"cmcd", "epas", "mux", "native"}


async def test_customers_beyond_the_limit_are_counted(serving: PostgresServing, dsn: str) -> None:
    figures = dict.fromkeys(MEASURES, 1)
    publish(dsn, {Slice(0, f"customer_{number}"): figures for number in range(CUSTOMERS_MAX + 7)})
    found = await serving.rollups_since(EVER, EVERYTHING)
    assert (len(found.sums), found.customers_omitted) == (CUSTOMERS_MAX, 7)
    assert (await serving.rollups_since(datetime.fromtimestamp(2**32, UTC), EVERYTHING)).customers_omitted == 0


async def test_only_the_customers_of_the_scope_are_read_and_counted(serving: PostgresServing, dsn: str) -> None:
    figures = dict.fromkeys(MEASURES, 1)
    publish(dsn, {Slice(0, customer_id): figures for customer_id in ("acme", "globex", "initech")})
    for scope, seen in (
        (CustomerScope(own=frozenset({"globex", "no-such"})), {"globex"}),
        (CustomerScope(), set()),
        (CustomerScope(all_but=frozenset({"globex"})), {"acme", "initech"}),
        (EVERYTHING, {"acme", "globex", "initech"}),
    ):
        found = await serving.rollups_since(EVER, scope)
        assert {one.customer_id for one in found.sums} == seen
        assert found.startups.keys() <= seen
        assert found.sources.keys() <= seen
        assert found.customers_omitted == 0


async def test_any_span_is_summed_from_blocks_of_hours_also_after_repairs_and_expiry(
    serving: PostgresServing, dsn: str
) -> None:
    chance = random.Random(4)
    newest = 491_500
    hours = [*chance.sample(range(newest - 9_000, newest + 1), 150), 8_191 * 60, 8_192 * 60]
    truth = {Slice(hour, chance.choice(["acme", "other"])): chance.randrange(1, 50) for hour in hours}

    def bring(views: dict[Slice, int]) -> None:
        measures = dict.fromkeys(MEASURES, 1)
        groups = [total(one, [*{**measures, "views": n}.values()], {n % 7: n}) for one, n in views.items() if n]
        finalizer.publish(Rebuilt(list(views), MEASURES, groups), checkpoint_id="c", batch_id=1)

    async def served(since: int) -> tuple[dict[str, int], dict[str, dict[int, int]]]:
        found = await serving.rollups_since(datetime.fromtimestamp(since * 3_600, UTC), EVERYTHING)
        return {one.customer_id: one.views for one in found.sums}, found.startups

    def counted(since: int) -> tuple[dict[str, int], dict[str, dict[int, int]]]:
        views: Counter[str] = Counter()
        startups: dict[str, Counter[int]] = {}
        for (hour, customer), n in truth.items():
            if hour >= since and n:
                views[customer] += n
                startups.setdefault(customer, Counter())[n % 7] += n
        return dict(views), {customer: dict(counts) for customer, counts in startups.items()}

    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as finalizer:
        finalizer.open()
        bring(truth)
        # Repaired: hours with other views, hours without any left.
        repaired = {one: chance.choice([0, 5]) for one in chance.sample(sorted(truth), 40)}
        bring(repaired)
        truth |= repaired
        spans = [0, newest + 1, *chance.sample(range(newest - 9_000, newest + 1), 20)]
        for since in spans:
            assert await served(since) == counted(since), since
        oldest = (newest - 4_000) // 24 * 24
        finalizer.expire(rollups_before_ms=oldest * 3_600_000, views_since_hour=None)
        truth = {one: n for one, n in truth.items() if one.hour >= oldest}
        for since in spans:
            assert await served(since) == counted(since), since


async def test_a_server_that_is_stopped_is_away_within_the_deadline_and_answers_when_it_goes_on(
    postgres: Postgres, dsn: str
) -> None:
    publish(dsn, {Slice(0, "acme"): dict.fromkeys(MEASURES, 1)})
    serving = PostgresServing(dsn, connections_max=1, seconds_max=1.0)
    await serving.open()
    try:
        assert (await serving.rollups_since(EVER, EVERYTHING)).sums
        with psycopg.connect(dsn) as other:
            (backend,) = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'playhead-dashboard' AND datname = current_database()"
            ).fetchone() or (0,)
        os.kill(backend, signal.SIGSTOP)
        try:
            async with asyncio.timeout(20):
                with pytest.raises(PostgresAway):
                    await serving.rollups_since(EVER, EVERYTHING)
        finally:
            os.kill(backend, signal.SIGCONT)
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(PostgresAway):
                    assert (await serving.rollups_since(EVER, EVERYTHING)).sums
                    break
                await asyncio.sleep(0.1)
    finally:
        await serving.close()


async def test_connections_that_a_restart_has_broken_are_replaced(dsn: str) -> None:
    publish(dsn, {Slice(0, "acme"): dict.fromkeys(MEASURES, 1)})
    serving = PostgresServing(dsn, connections_max=2, seconds_max=20.0)
    await serving.open()
    try:
        assert (await serving.rollups_since(EVER, EVERYTHING)).sums
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'playhead-dashboard' AND datname = current_database()"
            )
        assert (await serving.rollups_since(EVER, EVERYTHING)).sums
    finally:
        await serving.close()


async def test_tables_that_are_not_there_and_tables_of_another_version_have_different_errors(
    serving: PostgresServing, dsn: str
) -> None:
    with pytest.raises(NotPublished):
        await serving.rollups_since(EVER, EVERYTHING)
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE serving.blocks RENAME COLUMN watch_ms TO watched_ms")
    with pytest.raises(QueryRefused, match="UndefinedColumn"):
        await serving.rollups_since(EVER, EVERYTHING)
