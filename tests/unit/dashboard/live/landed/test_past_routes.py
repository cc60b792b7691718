"""Questions for earlier live figures: an organisation has few under way at a time, so that others find a connection to Postgres."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential
from services.accounts.core.customer_scope import CustomerScope
from services.accounts.http.access import Routing
from services.accounts.http.guard import Guard
from services.dashboard.live.landed.past import AskedPast, Row
from services.dashboard.live.landed.past_routes import QUESTIONS_AT_ONCE, QUESTIONS_MAX, PastRoutes
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
