"""Questions for earlier live figures: an organisation has few under way at a time, so that others find a connection to Postgres.

What is made of many minutes holds up nobody else, and they are no more than there is room for.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.core.customer_scope import CustomerScope
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.dashboard.live.landed.past import MINUTES_MAX, POINTS_MAX, AskedPast, Row, Wrong
from services.dashboard.live.landed.past_routes import (
    BYTES_MAX,
    QUESTIONS_AT_ONCE,
    QUESTIONS_MAX,
    PastRoutes,
    read_values,
)
from shared.schemas.live_minute import MINUTE_MS
from tests.unit.dashboard.door import GLOBEX_VIEWER, METRICS_TOKEN, OWNER, door
from tests.unit.dashboard.guarded_desk import headers_of


class Slow:
    """Minutes of globex come when the test lets them, others at once."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.under_way = self.under_way_max = 0

    async def rows(self, asked: AskedPast, _: CustomerScope) -> list[Row]:
        """See `Past`."""
        if asked.customer == "globex":
            self.under_way += 1
            self.under_way_max = max(self.under_way_max, self.under_way)
            await self.let.wait()
            self.under_way -= 1
        return []


@pytest.fixture
async def desk() -> AsyncIterator[tuple[TestClient[Any, Any], Slow]]:
    app, made, slow = web.Application(), door(), Slow()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    PastRoutes(slow).add_to(routing)
    async with TestClient(TestServer(app)) as client:
        yield client, slow
        slow.let.set()


async def status(client: TestClient[Any, Any], who: Credential, customer: str) -> int:
    path = f"/v1/live/history?customer={customer}&from_ms=0&until_ms=60000"
    async with client.get(path, headers=headers_of(who)) as answer:
        assert answer.status == 200 or int(answer.headers["Retry-After"]) >= 1
        return answer.status


async def test_an_organisation_has_few_questions_under_way_and_others_are_answered(
    desk: tuple[TestClient[Any, Any], Slow],
) -> None:
    client, slow = desk
    beyond = 5
    others = [asyncio.create_task(status(client, METRICS_TOKEN, "globex")) for _ in range(QUESTIONS_MAX)]
    many = [asyncio.create_task(status(client, GLOBEX_VIEWER, "globex")) for _ in range(QUESTIONS_MAX + beyond)]
    ended = asyncio.as_completed(many, timeout=30)
    assert [await next(ended) for _ in range(beyond)] == [429] * beyond
    assert await asyncio.wait_for(status(client, OWNER, "acme"), 30) == 200
    assert slow.under_way_max == QUESTIONS_AT_ONCE
    slow.let.set()
    assert sorted(await asyncio.gather(*many)) == [200] * QUESTIONS_MAX + [429] * beyond
    assert await asyncio.gather(*others) == [200] * QUESTIONS_MAX
    assert slow.under_way_max == QUESTIONS_AT_ONCE
    assert await status(client, GLOBEX_VIEWER, "globex") == 200


class HeldRows(list[Row]):
    """Rows that are read on once the loop has let them: what is made of them on the loop itself waits in vain."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = threading.Event()
        self.let = threading.Event()
        self.was_let = False

    def __iter__(self) -> Iterator[Row]:
        self.is_read.set()
        self.was_let = self.let.wait(10)
        return super().__iter__()


class Held:
    """Every question has the same rows."""

    def __init__(self, rows: HeldRows) -> None:
        self._rows = rows

    async def rows(self, _asked: AskedPast, _scope: CustomerScope) -> list[Row]:
        """See `Past`."""
        return self._rows


async def test_an_answer_that_is_made_of_many_minutes_holds_up_nobody() -> None:
    app, made, rows = web.Application(), door(), HeldRows()
    routing = Routing(app)
    guard = Guard(
        routing, made.identities, hosts=made.hosts, cookie=made.cookie, away_page=lambda: web.Response(status=503)
    )
    app.middlewares.append(guard.answer)
    PastRoutes(Held(rows)).add_to(routing)
    async with TestClient(TestServer(app)) as client:
        one = asyncio.create_task(status(client, METRICS_TOKEN, "globex"))
        assert await asyncio.to_thread(rows.is_read.wait, 30)
        rows.let.set()
        assert await one == 200
    assert rows.was_let


class Minutes:
    """A connection to a database in which each minute of a customer has a document of the same size."""

    def __init__(self, size: int) -> None:
        self._document = "x" * size
        self._found: Sequence[tuple[str, int, str]] = ()
        self.read = 0

    def cursor(self, **_: Any) -> "Minutes":
        return self

    async def __aenter__(self) -> "Minutes":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def execute(self, _: str, given: tuple[str, list[str], int, int]) -> None:
        *_others, first, end = given
        self._found = [("cdn", minute, self._document) for minute in range(first, end)]

    async def fetchall(self) -> Sequence[tuple[str, int, str]]:
        self.read += len(self._found)
        return self._found


def two_weeks() -> AskedPast:
    until_ms = MINUTES_MAX * MINUTE_MS
    step_ms = -(-MINUTES_MAX // POINTS_MAX) * MINUTE_MS
    return AskedPast(customer="acme", from_ms=0, until_ms=until_ms, dimension="cdn", step_ms=step_ms)


async def test_minutes_with_very_many_values_are_refused_before_they_fill_the_memory() -> None:
    size = 1 << 20
    large = Minutes(size)
    with pytest.raises(Wrong, match="ask for a shorter time, or for one value"):
        await read_values(large, two_weeks())  # type: ignore[arg-type]
    # One statement more than there is room for.
    assert BYTES_MAX < large.read * size < BYTES_MAX + 2 * 240 * size


async def test_two_weeks_of_minutes_with_few_values_are_read_whole() -> None:
    small = Minutes(1_000)
    rows = await read_values(small, two_weeks())  # type: ignore[arg-type]
    assert [row.minute for row in rows] == list(range(MINUTES_MAX))
