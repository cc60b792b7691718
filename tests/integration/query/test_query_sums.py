"""Sums of hours, asked as the API asks them, on a real Postgres with the finalizer's own tables."""

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import msgspec
import psycopg
import pytest
import structlog

from deploy.local.postgres import Postgres as Server
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.finalizer.serving.database import Serving
from services.finalizer.serving.migrate import migrate
from services.finalizer.serving.published import Group, Rebuilt, Slice
from services.query.answering import Answering
from services.query.core.answer import Breakdown, Overall, Timeseries
from services.query.core.question import Asked, AskedBreakdown, AskedSeries, understood
from services.query.scope import Caller
from services.rim.database.pool import NotPublished, Postgres, PostgresAway, QueryRefused
from shared.measures import SUMMED
from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.finalizer.expecting import hour_of
from tests.integration.finalizer.finalizing import HOUR_MS
from tests.integration.finalizer.served import MEASURES, publish, total
from tests.integration.query.querying import answering
from tests.integration.serving.hot import generated, write

pytestmark = pytest.mark.integration

#: What no view of these tests is after.
NOW_MS = 3_000_000_000_000


def at(hour: int) -> str:
    """An hour since 1970 as a parameter."""
    return f"{hour * HOUR_MS:09}"


@pytest.fixture
def dsn(postgres: Server) -> str:
    return postgres.create_database(f"sums_{uuid4().hex}")


@asynccontextmanager
async def asking(dsn: str, folder: Path, seconds_max: float = 20.0) -> AsyncIterator[Answering]:
    async with answering(dsn, folder, connections_max=1, seconds_max=seconds_max) as made:
        yield made


async def overall(
    asked: Answering, hours: tuple[int, int], scope: CustomerScope = EVERYTHING, metrics: str = "views,watch_ms"
) -> Overall:
    """The figures of these hours, from sums."""
    one = Asked(metrics=metrics, from_=at(hours[0]), to=at(hours[1]))
    found = await asked.answer(understood(one, Caller("test", scope).admit, NOW_MS))
    assert isinstance(found, Overall)
    assert [source.name for source in found.about.sources] == ["sums"]
    return found


async def by(
    asked: Answering,
    dimension: str,
    hours: tuple[int, int],
    scope: CustomerScope = EVERYTHING,
    metrics: str = "views,watch_ms",
) -> dict[str, tuple[float | None, ...]]:
    """The same of each value of a dimension."""
    one = AskedBreakdown(by=dimension, metrics=metrics, limit=1_000, from_=at(hours[0]), to=at(hours[1]))
    found = await asked.answer(understood(one, Caller("test", scope).admit, NOW_MS))
    assert isinstance(found, Breakdown)
    assert [source.name for source in found.about.sources] == ["sums"]
    return {
        str(group.key[0]): tuple(figure.value for figure in group.metrics.values())
        for group in found.groups
        if group.kind == "value"
    }


async def test_sums_that_64_bits_do_not_hold_are_returned(dsn: str, tmp_path: Path) -> None:
    vast = dict.fromkeys(MEASURES, 1) | {
        "watch_ms": 10**30,
        "playing_ms": 9 * 10**28,
        "rebuffer_ms": 10**28,
        "bitrate_time_ms": 10**25,
    }
    publish(dsn, {Slice(hour, "acme"): vast for hour in range(3)} | {Slice(0, "other"): vast})
    async with asking(dsn, tmp_path) as asked:
        found = await by(asked, "customer", (0, 9_000), metrics="views,watch_ms,rebuffer_fraction,rebuffer_ratio")
        assert (await overall(asked, (0, 3))).about.as_of_ms is not None
    assert found == {
        "acme": (3, 3 * 10**30, pytest.approx(0.01), pytest.approx(0.1)),
        "other": (1, 10**30, pytest.approx(0.01), pytest.approx(0.1)),
    }


async def test_each_view_counts_once_whether_the_warehouse_has_counted_it_or_not(dsn: str, tmp_path: Path) -> None:
    chance = random.Random(5)
    views = [
        generated(chance, f"view-{number}", customer="acme", source=chance.choice(["mux", "cmcd"]))
        for number in range(60)
    ]
    # The warehouse has all but the last views, and older revisions of some; a view has moved to another hour since.
    older = [generated(chance, view.view_id, source=view.source, customer="acme") for view in views[:40]]
    views = [msgspec.structs.replace(view, revision=2) for view in views]
    truth = [view for view in views if not view.deleted]
    hours = sorted(map(hour_of, (*truth, *older)))
    spans = [(first, first + 9_000) for first in (hours[0], sorted(map(hour_of, truth))[len(truth) // 2])]
    spans.append((hours[0], hours[len(hours) // 2]))
    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as finalizer:
        finalizer.open()
        finalizer.keep_views(0)
        groups = [group for view in older if not view.deleted for group in _rollups_of(view)]
        merged = _added(groups)
        slices = list({Slice(group.start_ms // HOUR_MS, group.customer_id) for group in merged})
        finalizer.publish(Rebuilt(slices, MEASURES, merged), checkpoint_id="c", batch_id=1)
        with psycopg.connect(dsn, autocommit=True) as connection:
            write(connection, older)
            write(connection, views)
            # Until all rows are there, the rollups alone are read.
            async with asking(dsn, tmp_path) as asked:
                for span in spans:
                    await _expect(asked, span, [view for view in older if not view.deleted])
            connection.execute("SELECT serving.settle(array_agg(hour), array_agg(customer_id)) FROM serving.hot_slices")
            connection.execute("UPDATE serving.coverage SET is_whole = true")
    async with asking(dsn, tmp_path) as asked:
        for span in spans:
            await _expect(asked, span, truth)


async def _expect(asked: Answering, hours: tuple[int, int], views: list[View]) -> None:
    """The whole, each customer, each client and each hour have the sums of these views."""
    wanted = [view for view in views if hours[0] <= hour_of(view) < hours[1]]
    truth = (len(wanted), sum(view.watch_ms for view in wanted))
    whole = await overall(asked, hours)
    assert tuple(figure.value for figure in whole.metrics.values()) == truth
    assert await by(asked, "customer", hours) == ({"acme": truth} if wanted else {})
    of_sources: dict[str, list[View]] = {}
    for view in wanted:
        of_sources.setdefault(view.source, []).append(view)
    assert await by(asked, "source", hours) == {
        source: (len(listed), sum(view.watch_ms for view in listed)) for source, listed in of_sources.items()
    }
    series = AskedSeries(metrics="views", bucket="day", from_=at(hours[0]), to=at(hours[1]))
    found = await asked.answer(understood(series, Caller("test").admit, NOW_MS))
    assert isinstance(found, Timeseries)
    hours_of_days = Counter(hour_of(view) // 24 for view in wanted)
    assert {point.to_ms // HOUR_MS: point.n for point in found.points if point.n} == {
        min(24 * (day + 1), hours[1]): count for day, count in hours_of_days.items()
    }


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


async def test_only_the_customers_of_the_scope_are_read_and_counted(dsn: str, tmp_path: Path) -> None:
    figures = dict.fromkeys(MEASURES, 1)
    publish(dsn, {Slice(0, customer_id): figures for customer_id in ("acme", "globex", "initech")})
    async with asking(dsn, tmp_path) as asked:
        for scope, seen in (
            (CustomerScope(own=frozenset({"globex", "no-such"})), {"globex"}),
            (CustomerScope(), set()),
            (CustomerScope(all_but=frozenset({"globex"})), {"acme", "initech"}),
            (EVERYTHING, {"acme", "globex", "initech"}),
        ):
            assert (await by(asked, "customer", (0, 5), scope)).keys() == seen
            assert (await overall(asked, (0, 5), scope)).n == len(seen)


async def test_any_span_is_summed_from_blocks_of_hours_also_after_repairs_and_expiry(dsn: str, tmp_path: Path) -> None:
    chance = random.Random(4)
    # A block of 8192 hours ends in the midst of them.
    newest = 8_192 * 60 + 700
    hours = [*chance.sample(range(newest - 9_000, newest + 1), 150), 8_192 * 60 - 1, 8_192 * 60]
    truth = {Slice(hour, chance.choice(["acme", "other"])): chance.randrange(1, 50) for hour in hours}

    def bring(views: dict[Slice, int]) -> None:
        measures = dict.fromkeys(MEASURES, 1)
        groups = [total(one, [*{**measures, "views": n}.values()]) for one, n in views.items() if n]
        finalizer.publish(Rebuilt(list(views), MEASURES, groups), checkpoint_id="c", batch_id=1)

    def counted(hours: tuple[int, int]) -> dict[str, tuple[float | None, ...]]:
        views: Counter[str] = Counter()
        rows: Counter[str] = Counter()
        for (hour, customer), n in truth.items():
            if hours[0] <= hour < hours[1] and n:
                views[customer] += n
                rows[customer] += 1
        return {customer: (n, rows[customer]) for customer, n in views.items()}

    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as finalizer:
        finalizer.open()
        bring(truth)
        # Repaired: hours with other views, hours without any left.
        repaired = {one: chance.choice([0, 5]) for one in chance.sample(sorted(truth), 40)}
        bring(repaired)
        truth |= repaired
        spans = [(newest - 9_000, newest + 600), (newest + 1, newest + 2)]
        for _ in range(20):
            first, end = sorted(chance.sample(range(newest - 9_000, newest + 600), 2))
            spans.append((first, end))
        async with asking(dsn, tmp_path) as asked:
            for span in spans:
                assert await by(asked, "customer", span) == counted(span), span
                assert (await overall(asked, span)).n == sum(int(n or 0) for n, _ in counted(span).values()), span
            oldest = (newest - 4_000) // 24 * 24
            finalizer.expire(rollups_before_ms=oldest * HOUR_MS, views_since_hour=None)
            with psycopg.connect(dsn, autocommit=True) as connection:
                # Else what begins before is answered from views.
                connection.execute("DELETE FROM serving.sums_from")
            truth = {one: n for one, n in truth.items() if one.hour >= oldest}
            for span in spans:
                assert await by(asked, "customer", span) == counted(span), span


async def answered_at_last(asked: Answering) -> Overall:
    """The figures, however often a busy machine lets the deadline of a question pass before."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(PostgresAway):
                return await overall(asked, (0, 5))
            await asyncio.sleep(0.1)


async def test_a_server_that_is_stopped_is_away_within_the_deadline_and_answers_when_it_goes_on(
    dsn: str, tmp_path: Path
) -> None:
    publish(dsn, {Slice(0, "acme"): dict.fromkeys(MEASURES, 1)})
    async with asking(dsn, tmp_path, seconds_max=1.0) as asked:
        assert (await answered_at_last(asked)).n == 1
        with psycopg.connect(dsn) as other:
            # Of one that was given up the backend may still be there.
            (backend,) = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'playhead-query' AND datname = current_database()"
                " ORDER BY backend_start DESC LIMIT 1"
            ).fetchone() or (0,)
        os.kill(backend, signal.SIGSTOP)
        try:
            async with asyncio.timeout(20):
                with pytest.raises(PostgresAway):
                    await overall(asked, (0, 5))
        finally:
            os.kill(backend, signal.SIGCONT)
        assert (await answered_at_last(asked)).n == 1


async def test_connections_that_a_restart_has_broken_are_replaced(dsn: str, tmp_path: Path) -> None:
    publish(dsn, {Slice(0, "acme"): dict.fromkeys(MEASURES, 1)})
    async with asking(dsn, tmp_path) as asked:
        assert (await overall(asked, (0, 5))).n == 1
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'playhead-query' AND datname = current_database()"
            )
        assert (await overall(asked, (0, 5))).n == 1


async def test_what_writes_is_repeated_only_where_nothing_of_it_had_begun(dsn: str) -> None:
    pool = Postgres(dsn, service="test", connections_max=2, seconds_max=60, writes=True)
    runs = 0

    async def write(connection: psycopg.AsyncConnection) -> None:
        nonlocal runs
        runs += 1
        await connection.execute("INSERT INTO written VALUES (%s)", (runs,))

    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("CREATE TABLE written (run int)")
        await pool.open()
        try:
            await pool.ask(write)
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'playhead-test' AND datname = current_database()"
            )
            await pool.ask(write)
            assert runs == 2
            # The connection ends during the commit: whether that took place, nobody here knows.
            other.execute("""
                CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    PERFORM pg_terminate_backend(pg_backend_pid());
                    PERFORM pg_sleep(50);
                    RETURN NULL;
                END $$;
                CREATE CONSTRAINT TRIGGER die AFTER INSERT ON written DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION die();
            """)
            with pytest.raises(PostgresAway):
                await pool.ask(write)
            assert runs == 3
        finally:
            await pool.close()


async def test_a_page_that_is_left_is_no_outage_of_postgres(dsn: str) -> None:
    pool = Postgres(dsn, service="test", connections_max=1, seconds_max=60)
    await pool.open()
    begun = asyncio.Event()

    async def read(connection: psycopg.AsyncConnection) -> None:
        begun.set()
        await connection.execute("SELECT pg_sleep(50)")

    try:
        with structlog.testing.capture_logs() as logged:
            left = asyncio.create_task(pool.ask(read))
            await begun.wait()
            left.cancel()
            with pytest.raises(asyncio.CancelledError):
                await left
            # The only connection is free, or another one has its place.
            await pool.ask(lambda connection: connection.execute("SELECT 1"))
        assert logged == []
    finally:
        await pool.close()


async def test_tables_that_are_not_there_and_tables_of_another_version_have_different_errors(
    dsn: str, tmp_path: Path
) -> None:
    async with asking(dsn, tmp_path) as asked:
        with pytest.raises(NotPublished):
            await overall(asked, (0, 5))
        migrate(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ALTER TABLE serving.blocks RENAME COLUMN watch_ms TO watched_ms")
        with pytest.raises(QueryRefused, match="UndefinedColumn"):
            await overall(asked, (0, 5))
